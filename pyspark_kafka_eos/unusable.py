"""Stands in for the sink where it cannot be imported, and says why when it is used."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import ClassVar, NoReturn

import pyspark
from pyspark.sql.datasource import DataSource


class UnusableSource(DataSource):
    """The format `kafka-eos` in an environment that cannot run it.

    Attributes:
        cause: what went wrong when the sink was imported; set by `pyspark_kafka_eos`.
    """

    cause: ClassVar[str] = "unknown"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.refuse()

    @classmethod
    def name(cls) -> str:
        return "kafka-eos"

    @classmethod
    def refuse(cls) -> NoReturn:
        """Raises ImportError with the cause, the environment and the way out."""
        raise ImportError(
            f"The format kafka-eos cannot be used here: importing eos_sink failed with "
            f"{cls.cause}. It needs pyspark 4.0 or newer with pyarrow; this is pyspark "
            f"{pyspark.__version__} in {sys.executable}. Nothing was written. On an older Spark "
            f"write with df.writeStream.foreachBatch(eos_sink.foreach_batch(options)); run "
            f"`{sys.executable} -m pip install --force-reinstall --no-deps eos-sink` if the "
            f"version is right."
        )
