"""Registers the format `kafka-eos` with Spark: installing the package is all it takes.

When a session first meets a Python data source, Spark imports every top-level module named
`pyspark_*` and takes its `DefaultSource`, all of them in one go: a module that raises takes every
Python source of the session with it. So this one imports next to nothing and never raises. Where
the sink cannot work (no Arrow writers, a broken install), the format is still there and
says so when it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eos_sink.spark.data_source import KafkaEosDataSource as DefaultSource
else:
    try:
        from eos_sink.spark.data_source import KafkaEosDataSource as DefaultSource
    except Exception as error:
        try:
            from pyspark_kafka_eos.unusable import UnusableSource as DefaultSource
        except Exception:
            # No Python data sources in this pyspark at all: nothing to register.
            pass
        else:
            DefaultSource.cause = f"{type(error).__name__}: {error}"

__all__ = ["DefaultSource"]
