"""Makes the format known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from eos_sink.errors import ConfigurationError
from eos_sink.identity import SESSION_PREFIX
from eos_sink.options import check_names
from eos_sink.spark.session_defaults import Defaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXISTS = "DATA_SOURCE_ALREADY_EXISTS"


def register_format(spark: SparkSession) -> None:
    """See `eos_sink.register`."""
    if not hasattr(spark, "dataSource"):
        raise ConfigurationError(
            f'Spark {spark.version} cannot know format("kafka-eos"): data sources in Python came '
            "with Spark 4.0.",
            remedy="Write with df.writeStream.foreachBatch(eos_sink.foreach_batch(options)), and a "
            "batch with eos_sink.write(df, options). Both apply the session's defaults without a "
            "call of register.",
        )
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
            raise ConfigurationError(
                f"Spark {spark.version} has found kafka-eos by its name and does not take it again "
                f"with defaults, so {SESSION_PREFIX}* cannot be applied.",
                remedy="Give them as options of each query, and do not call register. Spark 4.2 "
                "applies them.",
            ) from None
