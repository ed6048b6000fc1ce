"""Passes the options of a query to the sink's own parser, and collects the errors."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.connection.stores import describe_conversion, read_store
from eos_sink.kafka_config.translate import translate
from eos_sink.options import parse_batch_options, parse_options
from eos_sink_lab.migrate.queries import Given, Query, Way

ANY_TEXT = "x"
"""Replaces a value that cannot be read."""
IDENTITY = frozenset({"checkpointlocation", "eos.id", "queryname"})

_VERSIONS = {"txnappid", "txnversion"}
_NEEDED = {"kafka.bootstrap.servers": "x:1", "eos.id": "x"}


@dataclass
class Acceptance:
    """The parser's errors about the options of one query, by option in lower case.

    Attributes:
        errors: options that the sink refuses.
        lacking: options that it needs and the query does not give.
        absent: options with a store that is not on this machine, and the conversion of a JKS store.
    """

    errors: dict[str, ConfigurationError] = field(default_factory=dict)
    lacking: dict[str, ConfigurationError] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def try_options(query: Query, defaults: Sequence[Given] = ()) -> Acceptance:
    """Remove what the sink refuses and add what it lacks, until it accepts the rest.

    A value that cannot be read is replaced by any text: if that is accepted, so is every value.

    Args:
        query: the query.
        defaults: options that the session gives where the query does not.
    """
    answer = Acceptance()
    known = {given.key: given for given in (*defaults, *query.options) if given.name is not None}
    options = {
        name: ANY_TEXT if given.value is None else given.value for name, given in known.items()
    }
    if named := query.call("queryName"):
        options.setdefault("queryname", named.value or ANY_TEXT)
    if query.way is Way.PIPELINE:
        # Spark keeps a checkpoint for each flow into the sink.
        options.setdefault("checkpointlocation", "/")
    hidden = any(given.name is None for given in query.options)
    # Each round removes one option or adds one of the needed ones.
    for _ in range(len(options) + 2 * len(_NEEDED)):
        error = _find_error(options, query.way)
        if error is None:
            break
        text = f"{error.message} {error.remedy}"
        words = [word.strip(".").lower() for word in re.findall(r"[\w.-]+", text)]
        if blamed := _first(words, options):
            answer.errors[blamed] = error
            del options[blamed]
            continue
        named_options = [word for word in words if word.startswith(("kafka.", "eos."))]
        missing = _first(words, _NEEDED) or _first(named_options, named_options)
        # A value that was given and refused is not missing as well.
        alternatives = IDENTITY if missing == "eos.id" else {missing}
        if not hidden and not alternatives & answer.errors.keys():
            answer.lacking[missing] = error
        if missing not in _NEEDED:
            # The parser checks each setting before all of them together: no other error is left.
            break
        options[missing] = _NEEDED[missing]
    _open_stores(answer, known)
    return answer


def _open_stores(answer: Acceptance, known: Mapping[str, Given]) -> None:
    """Read the stores as the clients do: only the content shows the kind of a store."""
    kafka = {
        name.removeprefix("kafka."): given.value
        for name, given in known.items()
        if name.startswith("kafka.ssl.") and given.value is not None and name not in answer.errors
    }
    protocol = known.get("kafka.security.protocol")
    if protocol is None or not (protocol.value or "ssl").strip().lower().endswith("ssl"):
        return
    for store in translate({**kafka, "security.protocol": "ssl"}).stores:
        option = f"kafka.{store.option}"
        if not Path(store.location).exists():
            if store.kind != "PEM":
                answer.absent[option] = describe_conversion(store)
            continue
        try:
            read_store(store)
        except ConfigurationError as error:
            answer.errors[option] = error


def _find_error(options: Mapping[str, str], way: Way) -> ConfigurationError | None:
    """The first error that a query with these options raises at its start, before it calls
    Kafka."""
    numbered = not way.writes and not _VERSIONS.isdisjoint(options)
    try:
        (parse_batch_options if way is Way.BATCH or numbered else parse_options)(options)
    except ConfigurationError as error:
        return error.errors[0] if error.errors else error
    return None


def _first(words: Sequence[str], names: Collection[str]) -> str:
    return next((word for word in words if word in names), "")
