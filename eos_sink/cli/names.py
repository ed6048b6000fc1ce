"""Which query a person means."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence

from eos_sink.cli.report import CommandError
from eos_sink.errors import EosSinkError
from eos_sink.identity import DEFAULT_PREFIX, QUERY_NAME, QueryNames, query_identity
from eos_sink.log.record import decode, is_moved


def queries_in(records: Mapping[str, bytes] | None) -> list[str] | None:
    """The queries that a log's records are of, as they are shown; None: there is no log."""
    if records is None:
        return None
    found = set()
    for key, value in records.items():
        prefix = ""
        with contextlib.suppress(EosSinkError):
            prefix = decode(value, key).prefix
        if not is_moved(value):
            found.add(QueryNames.of_record(key, prefix).shown)
    return sorted(found)


def meant(given: str, known: Sequence[str] | None, prefix: str = DEFAULT_PREFIX) -> str:
    """The query of the log that is meant, as it is shown: by its whole name, with its prefix or
    without, by the readable part of it, or by the `eos.id`, checkpoint location or query name that
    it follows from. One that the log does not know has to be named in full, since its record may be
    what is missing.

    Args:
        known: as they are shown.
        prefix: of the one that is meant, where several prefixes have it.

    Raises:
        CommandError: there is none, or more than one.
    """
    wanted = _matching(given, known or ())
    under = [name for name in wanted if names_of(name).prefix == prefix]
    if len(wanted) > 1 and prefix != DEFAULT_PREFIX and len(under) == 1:
        return under[0]
    if len(wanted) > 1:
        groups = " or ".join(names_of(each).group for each in wanted)
        raise CommandError(f"{given!r} may be {groups}: give the whole name")
    if wanted:
        return wanted[0]
    if QUERY_NAME.fullmatch(given):
        return QueryNames(prefix, given).shown
    if known is None:
        raise CommandError(
            f"there is no such log topic (--log-topic), so give the query's whole name instead of "
            f"{given!r}, as its error names it"
        )
    near = difflib.get_close_matches(given, known, n=3, cutoff=0.3) or list(known)[:3]
    hint = f"; it knows {', '.join(near)}" if near else ", nor any other"
    raise CommandError(f"the decision log knows no query {given!r}{hint}")


def names_of(shown: str) -> QueryNames:
    """The names of a query that `meant` has found."""
    return QueryNames.of_shown(shown) or QueryNames(DEFAULT_PREFIX, shown)


def _matching(given: str, known: Sequence[str]) -> list[str]:
    exact = [each for each in known if names_of(each).group == given]
    if exact:
        return exact
    names = {given, query_identity(given, None, None), query_identity(None, None, given)}
    if given.startswith("/") or ":/" in given:
        names.add(query_identity(None, given, None))
    found = [each for each in known if names_of(each).query in names]
    return found or [each for each in known if names_of(each).query.rpartition("-")[0] == given]
