"""Reads options that stand alone: a properties file, or NAME=VALUE pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eos_sink.defaults import PREFIX
from eos_sink.migrate.model import Given, Place, Query, Source, Way
from eos_sink.properties import read_properties


def read_options_file(text: str, file: str) -> Source:
    """The options of a properties file; spark-defaults.conf is one, too."""
    return from_settings(
        file,
        [
            Given(entry.name, entry.value, Place(file, entry.line))
            for entry in read_properties(text)
        ],
    )


def read_pairs(pairs: Iterable[str]) -> Source:
    """The options of a command line, each NAME=VALUE."""
    split = (pair.partition("=") for pair in pairs)
    return from_settings("", [Given(name.strip(), value, Place("", 0)) for name, _, value in split])


def from_settings(name: str, found: Iterable[Given]) -> Source:
    """Options, defaults of options, and Spark's own settings told apart by their names."""
    kept: dict[Way, list[Given]] = {Way.OPTIONS: [], Way.DEFAULTS: []}
    session: list[Given] = []
    for given in found:
        written = given.name or ""
        if written.startswith(PREFIX):
            kept[Way.DEFAULTS].append(replace(given, name=written.removeprefix(PREFIX)))
        elif written.startswith("spark."):
            session.append(given)
        else:
            kept[Way.OPTIONS].append(given)
    queries = (
        Query(way, options[0].place, tuple(options)) for way, options in kept.items() if options
    )
    return Source(name, tuple(queries), tuple(session))
