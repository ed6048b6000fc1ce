"""What is asked of a Spark session beside the public API that all releases share."""

from __future__ import annotations

import os
import uuid
from typing import Any


def is_classic(value: object) -> bool:
    """True for a session or a frame that is not one of Spark Connect."""
    return not type(value).__module__.startswith("pyspark.sql.connect.")


def pins_threads() -> bool:
    """True if a thread of Python has a thread of the JVM of its own, so that it sees the properties
    of the query that has called it; Spark's default."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def read_settings(spark: Any) -> dict[str, str]:
    """The settings of a session. `spark.conf.getAll` came with Spark 4.0, so a Spark Connect before
    it shows none."""
    if is_classic(spark):
        return to_dict(spark._jsparkSession.conf().getAll())
    return dict(getattr(spark.conf, "getAll", {}))


def to_dict(scala_map: Any) -> dict[str, str]:
    """A map of the JVM. Py4J would send four requests for each entry, so names and values come as
    one text each. Any text may be in them, so what separates them is another one each time."""
    end = uuid.uuid4().hex
    names = scala_map.keys().mkString(end)
    if not names:
        return {}
    values = scala_map.values().mkString(end)
    return dict(zip(names.split(end), values.split(end), strict=True))
