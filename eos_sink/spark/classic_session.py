"""Asks a Spark session beside the public API that all releases share."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

from eos_sink.messages import Reason, stop

if TYPE_CHECKING:
    from eos_sink.sink_options import Version


def is_classic(value: object) -> bool:
    """True for a session or a frame that is not one of Spark Connect."""
    return not type(value).__module__.startswith("pyspark.sql.connect.")


def pins_threads() -> bool:
    """True if a thread of Python has a thread of the JVM of its own, so that it sees the properties
    of the query that has called it; Spark's default."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def check_threads(version: Version | None) -> None:
    """Check that a write would see the query whose `foreachBatch` makes it. If threads are not
    pinned, nothing distinguishes it from a write outside of a query, which is refused too.

    Args:
        version: numbers the write, which then needs no query.

    Raises:
        ConfigurationError: it would be a write without a number, which a repeated batch repeats.
    """
    if version is None and not pins_threads():
        raise stop(Reason.THREADS_NOT_PINNED)


def read_settings(spark: Any) -> dict[str, str]:
    """The settings of a session. `spark.conf.getAll` came with Spark 4.0, so a Spark Connect before
    it shows none."""
    if is_classic(spark):
        return to_dict(spark._jsparkSession.conf().getAll())
    return dict(getattr(spark.conf, "getAll", {}))


def active_settings() -> dict[str, str]:
    """The settings of this thread's session; none if it has no session."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    return {} if active is None else read_settings(active)


def to_dict(scala_map: Any) -> dict[str, str]:
    """A map of the JVM. Py4J would send four requests for each entry, so names and values come as
    one text each. Any text may be in them, so what separates them is another one each time."""
    end = uuid.uuid4().hex
    names = scala_map.keys().mkString(end)
    if not names:
        return {}
    values = scala_map.values().mkString(end)
    return dict(zip(names.split(end), values.split(end), strict=True))
