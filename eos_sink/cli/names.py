"""Which query a person means."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence

from eos_sink.cli.output import CommandError
from eos_sink.decision_log.codec import decode, is_moved
from eos_sink.errors import EosSinkError
from eos_sink.identity import DEFAULT_PREFIX, QUERY_NAME, QueryNames, query_identity


def queries_in(records: Mapping[str, bytes] | None) -> list[QueryNames] | None:
    """The queries that a log's records are of; None: there is no log."""
    if records is None:
        return None
    found = set()
    for key, value in records.items():
        prefix = ""
        with contextlib.suppress(EosSinkError):
            prefix = decode(value, key).prefix
        if not is_moved(value):
            found.add(QueryNames.of_record(key, prefix))
    return sorted(found, key=lambda names: names.shown)


def meant(
    given: str, known: Sequence[QueryNames] | None, prefix: str = DEFAULT_PREFIX
) -> QueryNames:
    """The query of the log that is meant: by its whole name, with its prefix or without, by the
    readable part of it, or by the `eos.id`, checkpoint location or query name that it follows from.
    One that the log does not know has to be named in full, since its record may be what is missing.

    Args:
        prefix: of the one that is meant, where several prefixes have it.

    Raises:
        CommandError: there is none, or more than one.
    """
    found = _matching(given, known or ())
    under = [names for names in found if names.prefix == prefix != DEFAULT_PREFIX]
    if len(under) == 1:
        return under[0]
    if len(found) > 1:
        groups = " or ".join(names.group for names in found)
        raise CommandError(f"{given!r} may be {groups}: give the whole name")
    if found:
        return found[0]
    if QUERY_NAME.fullmatch(given):
        return QueryNames(prefix, given)
    if known is None:
        raise CommandError(
            f"there is no such log topic (--log-topic), so give the query's whole name instead of "
            f"{given!r}, as its error names it"
        )
    shown = [names.shown for names in known]
    near = difflib.get_close_matches(given, shown, n=3, cutoff=0.3) or shown[:3]
    hint = f"; it knows {', '.join(near)}" if near else ", nor any other"
    raise CommandError(f"the decision log knows no query {given!r}{hint}")


def _matching(given: str, known: Sequence[QueryNames]) -> list[QueryNames]:
    exact = [names for names in known if names.group == given]
    if exact:
        return exact
    whole = {given, query_identity(given, None, None), query_identity(None, None, given)}
    if given.startswith("/") or ":/" in given:
        whole.add(query_identity(None, given, None))
    found = [names for names in known if names.query in whole]
    return found or [names for names in known if names.query.rpartition("-")[0] == given]
