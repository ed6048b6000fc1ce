"""Which query a person means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from eos_sink.cli.report import CommandError
from eos_sink.identity import QUERY_NAME, query_identity


def meant(given: str, known: Sequence[str] | None) -> str:
    """The query of the log that is meant: by its whole name, by the readable part of it, or by the
    `eos.id`, checkpoint location or query name that it follows from. One that the log does not
    know has to be named in full, since its record may be what is missing.

    Raises:
        CommandError: there is none, or more than one.
    """
    if QUERY_NAME.fullmatch(given):
        return given
    names = {given, query_identity(given, None, None), query_identity(None, None, given)}
    if given.startswith("/") or ":/" in given:
        names.add(query_identity(None, given, None))
    found = [name for name in known or () if name in names]
    found = found or [name for name in known or () if name.rpartition("-")[0] == given]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(f"{given!r} may be {' or '.join(found)}: give the whole name")
    if known is None:
        raise CommandError(
            f"there is no such log topic (--log-topic), so give the query's whole name instead of "
            f"{given!r}, as its error names it"
        )
    near = difflib.get_close_matches(given, known, n=3, cutoff=0.3) or list(known)[:3]
    hint = f"; it knows {', '.join(near)}" if near else ", nor any other"
    raise CommandError(f"the decision log knows no query {given!r}{hint}")
