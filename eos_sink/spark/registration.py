"""Makes the format known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from eos_sink.identity import SESSION_PREFIX
from eos_sink.messages import Reason, stop
from eos_sink.options import check_names
from eos_sink.spark.session_defaults import Defaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXISTS = "DATA_SOURCE_ALREADY_EXISTS"


def register_format(spark: SparkSession) -> None:
    """See `eos_sink.register`."""
    if not hasattr(spark, "dataSource"):
        raise stop(Reason.NO_PYTHON_SOURCES, version=spark.version)
    from eos_sink.spark.data_source import with_defaults

    defaults = Defaults.of_settings(spark.conf.getAll)
    check_names(defaults.values)
    try:
        spark.dataSource.register(with_defaults(defaults))
    except AnalysisException as error:
        # Spark 4.0 keeps a data source that it has found by its name.
        if error.getCondition() != _EXISTS:
            raise
        if defaults.values:
            version = spark.version
            raise stop(Reason.NO_DEFAULTS, version=version, prefix=SESSION_PREFIX) from None
