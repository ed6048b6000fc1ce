"""`format("kafka-eos")`: Spark's Python data source API around the protocol.

Spark creates the source anew for each plan, ships the writer to the tasks, and unpickles an earlier
instance in the process that runs a stream's `commit()` and `abort()`; that is how the two are told
apart (pyspark.sql.worker.write_into_data_source, python_streaming_sink_runner). For a batch that
process gets the writer, and no source (pyspark.sql.worker.commit_data_source_write).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from eos_sink.errors import ConfigurationError
from eos_sink.options import SinkOptions, check_options, parse_batch_options, parse_options
from eos_sink.protocol.model import Plan
from eos_sink.spark.client_cache import Kept
from eos_sink.spark.session_defaults import Defaults
from eos_sink.spark.writers import (
    BatchWriter,
    CheckSettings,
    Connect,
    StreamWriter,
    adds_batch_remedy,
    in_this_python,
)

if TYPE_CHECKING:
    from eos_sink.driver.planner import Planner
    from eos_sink.kafka.interfaces import Kafka

FORMAT = "kafka-eos"

_planners: Kept[Planner] = Kept()


def connect(options: SinkOptions) -> Kafka:
    """The real clients. Imported here, since Spark imports this module to look the format up."""
    with in_this_python():
        from eos_sink.kafka.cluster import ConfluentKafka

    return ConfluentKafka(options)


class KafkaEosDataSource(DataSource):
    """The exactly-once Kafka sink. See docs/options.md for its options."""

    connect: Connect = staticmethod(connect)
    defaults = Defaults()

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        check_options(self._all_options())
        self._unpickled = False

    def _all_options(self) -> dict[str, str]:
        return type(self).defaults.under(self.options)

    def _check_settings(self) -> CheckSettings:
        return partial(type(self).defaults.check_applied, frozenset(self.options))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._unpickled = True

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Called once for each `df.write...save()`, when it begins to run."""
        if overwrite:
            raise ConfigurationError(
                "mode('overwrite') would have to delete what is in the topic, which this sink "
                "never does.",
                remedy="Use mode('append'); to start afresh, delete the topic's records with "
                "Kafka's own tools. Nothing was written or deleted.",
            )
        options = parse_batch_options(self._all_options())
        with adds_batch_remedy():
            plan = self._plan(schema, options.sink)
        connect, check = type(self).connect, self._check_settings()
        return BatchWriter(options.sink, connect, plan, options.version, check)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> StreamWriter:
        options = parse_options(self._all_options())
        if self._unpickled:
            # The process of commit() and abort() must not join, recover or sweep.
            return StreamWriter(options, type(self).connect, None)
        plan = self._plan(schema, options)
        return StreamWriter(options, type(self).connect, plan, self._check_settings())

    def _plan(self, schema: StructType, options: SinkOptions) -> Plan:
        # Imported here: Spark imports this module to look the format up, and pyarrow is slow.
        with in_this_python():
            from eos_sink.task.columns import check_columns

        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(types, options.topic, options.timestamp_column)
        return _planner(options, type(self).connect).plan()


def with_defaults(defaults: Defaults) -> type[KafkaEosDataSource]:
    """The source with a session's defaults in it. Being local, it is pickled with all it holds."""

    class WithDefaults(KafkaEosDataSource):
        pass

    WithDefaults.defaults = defaults
    return WithDefaults


def _planner(options: SinkOptions, connect: Connect) -> Planner:
    from eos_sink.driver.planner import Planner

    return _planners.get(options, lambda: Planner(connect(options), options))
