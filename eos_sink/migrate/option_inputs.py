"""Reads options from a properties file or from NAME=VALUE pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eos_sink.kafka_config.properties_file import read_properties
from eos_sink.migrate.queries import Given, Place, Query, Source, Way
from eos_sink.options import SESSION_PREFIX


def read_options_file(text: str, file: str) -> Source:
    """Read a properties file; spark-defaults.conf has the same syntax."""
    entries = read_properties(text)
    return sort_settings(file, (Given(e.name, e.value, Place(file, e.line)) for e in entries))


def read_pairs(pairs: Iterable[str]) -> Source:
    """Read NAME=VALUE pairs of a command line."""
    split = (pair.partition("=") for pair in pairs)
    return sort_settings("", (Given(name.strip(), value, Place("", 0)) for name, _, value in split))


def sort_settings(name: str, settings: Iterable[Given]) -> Source:
    """Separate options, defaults of options, and Spark's own settings, by their names."""
    options: list[Given] = []
    defaults: list[Given] = []
    session: list[Given] = []
    for given in settings:
        written = given.name or ""
        if written.startswith(SESSION_PREFIX):
            defaults.append(replace(given, name=written.removeprefix(SESSION_PREFIX)))
        else:
            (session if written.startswith("spark.") else options).append(given)
    queries = (
        Query(way, found[0].place, tuple(found))
        for way, found in ((Way.OPTIONS, options), (Way.DEFAULTS, defaults))
        if found
    )
    return Source(name, tuple(queries), tuple(session))
