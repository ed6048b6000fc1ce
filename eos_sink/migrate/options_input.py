"""Reads options that stand alone: a properties file, or NAME=VALUE pairs."""

from __future__ import annotations

from collections.abc import Iterable

from eos_sink.migrate.model import Given, Place, Query, Source, Way
from eos_sink.properties import read_properties

PREFIX = "spark.datasource.kafka-eos."
"""What stands before an option of the sink in Spark's own configuration."""


def read_options_file(text: str, file: str) -> Source:
    """The options of a properties file; spark-defaults.conf is one, too."""
    found = (
        Given(entry.name, entry.value, Place(file, entry.line)) for entry in read_properties(text)
    )
    return _source(file, found)


def read_pairs(pairs: Iterable[str]) -> Source:
    """The options of a command line, each NAME=VALUE."""
    split = (pair.partition("=") for pair in pairs)
    return _source("", (Given(name.strip(), value, Place("", 0)) for name, _, value in split))


def _source(name: str, found: Iterable[Given]) -> Source:
    options: list[Given] = []
    session: list[Given] = []
    for given in found:
        written = (given.name or "").lower()
        if written.startswith("spark.") and not written.startswith(PREFIX):
            session.append(given)
        else:
            options.append(given)
    place = options[0].place if options else Place(name, 1 if name else 0)
    queries = (Query(Way.OPTIONS, place, tuple(options)),) if options else ()
    return Source(name, queries, tuple(session))
