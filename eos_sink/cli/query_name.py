"""Which query an operator means, and the name that confirms a change."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from eos_sink.cli.output import CommandError, printable
from eos_sink.identity import (
    DEFAULT_PREFIX,
    QUERY_NAME,
    QueryNames,
    query_identity,
    shown_location,
)
from eos_sink.kafka.admin_interface import Admin
from eos_sink.kafka.deadline import Deadline
from eos_sink.ops.history import History, find_names, histories, read_records

FOUND_BY = (
    "A query is found by its name in errors and in the decision log, by its eos.id, by its "
    "checkpoint location or by its query name."
)


NAME_TO_TYPE = f"the query's name (with its prefix, if that is not {DEFAULT_PREFIX})"
"""The name that confirms a change; it is `QueryNames.shown`."""


def add_query(parser: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Declare QUERY.

    Args:
        parser: of the command.
        nargs: "?" or "*" if the command shows all queries when none is named.
    """
    shown = {None: "Name of the query.", "?": "Show this query only."}
    help_ = shown.get(nargs, "Show these queries only.")
    parser.add_argument("query", nargs=nargs, metavar="QUERY", help=f"{help_} {FOUND_BY}")


def find_history(
    admin: Admin, given: str, prefix: str, deadline: Deadline
) -> tuple[QueryNames, History]:
    """Find a query as `find_query` does, and its records.

    Raises:
        CommandError: no query matches, or several do.
    """
    page = admin.read_log({}, deadline)
    if page is None:
        names = find_query(given, None, prefix)
        return names, History(names.shown, (), log=False)
    by_names = {
        find_names(history, prefix): history
        for history in histories(*read_records(page.lines)).values()
    }
    unread = "".join(
        f" Partition {number} of the decision log is not seen, nor its queries: {why}."
        for number, why in page.unread.items()
    )
    try:
        names = find_query(given, by_names, prefix)
    except CommandError as error:
        raise CommandError(f"{error}.{unread}" if unread else str(error)) from error
    history = by_names.get(names) or History(names.shown, (), unread=unread.strip())
    home = {written.position.partition for written in history.records}
    return names, replace(history, held=bool(page.held & (home or page.held)))


def find_query(
    given: str, queries: Collection[QueryNames] | None, prefix: str = DEFAULT_PREFIX
) -> QueryNames:
    """Find a query by its whole name, with or without prefix, by the readable part of it, or by the
    `eos.id`, checkpoint location or query name that it is made from. A query that the log does not
    have needs its whole name, since its record may be what is missing.

    Args:
        queries: those of the log; None if there is no log.
        prefix: another one than the default is that of the query. The default is none that was
            given, so a query is found under any prefix then; but not by the name that errors
            print without a prefix, which may be that of a query whose record is missing.

    Raises:
        CommandError: no query matches, or several do.
    """
    matches = _match(given, queries or ())
    if prefix != DEFAULT_PREFIX:
        matches = [names for names in matches if names.prefix == prefix]
    if len(matches) > 1:
        groups = " or ".join(names.group for names in matches)
        raise CommandError(f"{shown_location(given)!r} may be {groups}: give one of these names")
    if matches:
        (names,) = matches
        if names.query == given and names.prefix != prefix:
            raise CommandError(
                f"the decision log has {given} as {names.group} only: add --prefix {names.prefix}. "
                f"If you mean the query without a prefix of its own, whose record is missing, name "
                f"it {prefix}{given}"
            )
        return names
    whole = given.removeprefix(prefix)
    if QUERY_NAME.fullmatch(whole):
        return QueryNames(prefix, whole)
    if queries is None:
        raise CommandError(
            f"there is no such log topic (--log-topic), so give the query's whole name instead of "
            f"{shown_location(given)!r}, as its error names it"
        )
    shown = [names.shown for names in queries]
    near = difflib.get_close_matches(given, shown, n=3, cutoff=0.3) or shown[:3]
    hint = f"; it has {', '.join(near)}" if near else ", nor any other"
    raise CommandError(f"the decision log has no query {shown_location(given)!r}{hint}")


def _match(given: str, queries: Collection[QueryNames]) -> list[QueryNames]:
    exact = [names for names in queries if names.group == given]
    if exact:
        return exact
    whole = {given, query_identity(given, None, None), query_identity(None, None, given)}
    if given.startswith("/") or ":/" in given:
        whole.add(query_identity(None, given, None))
    matches = [names for names in queries if names.query in whole]
    return matches or [names for names in queries if names.query.rpartition("-")[0] == given]


def confirm(warnings: Sequence[str], name: str) -> None:
    """Ask the operator to type the query's name; `--yes` confirms in a script.

    Args:
        warnings: the consequences.
        name: what has to be typed; see `NAME_TO_TYPE`.

    Raises:
        CommandError: stdin is not a terminal, or something else was typed.
    """
    if not sys.stdin.isatty():
        raise CommandError("stdin is not a terminal, so nothing can confirm this: add --yes")
    for warning in warnings:
        print(printable(warning), file=sys.stderr)
    print(f"Type {NAME_TO_TYPE} to continue: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise CommandError("not confirmed; nothing was changed")
