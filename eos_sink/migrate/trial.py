"""Whether the sink accepts the options of a query, asked of the code that would accept them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eos_sink.clients.stores import conversion, store_settings
from eos_sink.errors import ConfigurationError
from eos_sink.kafka_settings import translate
from eos_sink.migrate.model import Given, Query, Way
from eos_sink.options import parse_batch_options, parse_options

ANY_TEXT = "x"
"""Stands for a value that cannot be read."""
IDENTITY = frozenset({"checkpointlocation", "eos.id", "queryname"})

_VERSIONS = {"txnappid", "txnversion"}
_NEEDED = {"kafka.bootstrap.servers": "x:1", "eos.id": "x"}


@dataclass
class Trial:
    """What the sink says to the options of one query.

    Attributes:
        errors: the options that it refuses, in lower case, and why.
        lacking: what is needed and not given, and why.
        absent: the options whose store is not on this machine, and what helps if it is a JKS one.
    """

    errors: dict[str, ConfigurationError] = field(default_factory=dict)
    lacking: dict[str, ConfigurationError] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def try_options(query: Query, last: Mapping[str, Given], defaults: Sequence[Given] = ()) -> Trial:
    """Take away what is refused and add what is missing, until the rest is accepted.

    A value that cannot be read is tried as any text: where that will do, so will the value.

    Args:
        query: for its way of writing and its name.
        last: its options by their names in lower case.
        defaults: options that the session gives where the query does not.
    """
    trial = Trial()
    known = {(given.name or "").lower(): given for given in defaults} | dict(last)
    options = {
        name: ANY_TEXT if given.value is None else given.value
        for name, given in known.items()
        if given.name is not None
    }
    named = query.call("queryName")
    if named is not None:
        options.setdefault("queryname", named.value or ANY_TEXT)
    if query.way is Way.PIPELINE:
        # Spark keeps a checkpoint for each flow into the sink.
        options.setdefault("checkpointlocation", "/")
    hidden = any(given.name is None for given in query.options)
    # Each round takes one option away or adds one of two.
    for _ in range(len(options) + 2 * len(_NEEDED)):
        error = _refusal(options, query.way)
        if error is None:
            break
        blamed = _blamed(error, options)
        missing = _blamed(error, _NEEDED) or _first_option(error)
        if blamed is not None:
            trial.errors[blamed] = error
            del options[blamed]
        elif missing in _NEEDED:
            options[missing] = _NEEDED[missing]
            refused = IDENTITY if missing == "eos.id" else {missing}
            if not hidden and not refused & trial.errors.keys():
                trial.lacking[missing] = error
        else:
            # Settings are looked at one by one before all of them together, so each was seen.
            if not hidden and missing not in trial.errors:
                trial.lacking[missing] = error
            break
    _open_stores(trial, known)
    return trial


def _open_stores(trial: Trial, known: Mapping[str, Given]) -> None:
    """Read the stores as the clients would: only the files tell of what kind they are."""
    kafka = {
        name.removeprefix("kafka."): given.value
        for name, given in known.items()
        if name.startswith("kafka.ssl.") and given.value is not None and name not in trial.errors
    }
    protocol = known.get("kafka.security.protocol")
    if protocol is None or not (protocol.value or "ssl").strip().lower().endswith("ssl"):
        return
    for store in translate({**kafka, "security.protocol": "ssl"}).stores:
        option = f"kafka.{store.option}"
        if store.kind != "PEM" and not Path(store.location).exists():
            trial.absent[option] = conversion(store)
            continue
        try:
            store_settings(store)
        except ConfigurationError as error:
            trial.errors[option] = error


def _refusal(options: Mapping[str, str], way: Way) -> ConfigurationError | None:
    """What a query with these options would be told at its start, before it asks a broker."""
    numbered = not way.writes and not _VERSIONS.isdisjoint(options)
    try:
        if way is Way.BATCH or numbered:
            parse_batch_options(options)
        else:
            parse_options(options)
    except ConfigurationError as error:
        return error
    return None


def _blamed(error: ConfigurationError, names: Collection[str]) -> str | None:
    """The first of the names that the error speaks of."""
    return next((word for word in _words(error) if word in names), None)


def _first_option(error: ConfigurationError) -> str:
    return next((word for word in _words(error) if word.startswith(("kafka.", "eos."))), "")


def _words(error: ConfigurationError) -> list[str]:
    text = f"{error.message} {error.remedy}"
    return [word.strip(".").lower() for word in re.findall(r"[\w.-]+", text)]
