"""`format("kafka-eos")`: Spark's Python data source API around the protocol.

Spark creates a source for each plan and ships the writer to the tasks. The process that runs a
stream's `commit()` and `abort()` gets an unpickled source, which is how it is recognised
(pyspark.sql.worker.write_into_data_source, python_streaming_sink_runner). For a batch it gets the
writer and no source (pyspark.sql.worker.commit_data_source_write).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

# Some platforms have Python data sources without the second one: this import fails, and
# `pyspark_kafka_eos` says why.
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter  # noqa: F401

from eos_sink.errors import ConfigurationError, without_frames
from eos_sink.spark.client_cache import ClientCache, Connect, connect
from eos_sink.spark.session_defaults import Defaults

# Spark imports this module in each look-up of a Python data source of any name: everything
# else is imported where it is used.
if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from eos_sink.driver.planner import Planner
    from eos_sink.protocol.model import Plan
    from eos_sink.sink_options import SinkOptions
    from eos_sink.spark.sink_writer import CheckSettings
    from eos_sink.spark.writers import BatchWriter, StreamWriter

FORMAT = "kafka-eos"

_planners: ClientCache[Planner] = ClientCache()


class KafkaEosDataSource(DataSource):
    """The exactly-once Kafka sink. See docs/options.md for its options."""

    connect: Connect = staticmethod(connect)
    defaults = Defaults()

    @without_frames
    def __init__(self, options: Mapping[str, str]) -> None:
        from eos_sink.options import parse_common_options

        super().__init__(dict(options))
        parse_common_options(self._all_options())
        self._committing: SinkOptions | None = None

    def _all_options(self) -> dict[str, str]:
        return type(self).defaults.fill_in(self.options)

    def _check_settings(self) -> CheckSettings:
        return partial(type(self).defaults.check_applied, frozenset(self.options))

    def __getstate__(self) -> dict[str, Any]:
        """Spark pickles the source of a stream once, after the first plan, for the process of
        commit() and abort(), which need not parse the options again."""
        from eos_sink.options import parse_options

        state = dict(self.__dict__)
        # An error is raised where it is shown: by `streamWriter`, before that plan.
        with contextlib.suppress(ConfigurationError):
            state["_committing"] = parse_options(self._all_options())
        return state

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @without_frames
    def schema(self) -> StructType:
        """Called for a query that reads."""
        from eos_sink.messages import Reason, stop

        raise stop(Reason.ONLY_WRITES)

    @without_frames
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Called once for each `df.write...save()`, when it runs."""
        from eos_sink.messages import Reason, stop
        from eos_sink.options import parse_batch_options
        from eos_sink.spark.classic_session import check_threads
        from eos_sink.spark.writers import BatchWriter

        if overwrite:
            raise stop(Reason.NO_OVERWRITE)
        options = parse_batch_options(self._all_options())
        # The JVM starts this process, so it has the environment of the user's driver.
        check_threads(options.version)
        plan = self._plan(schema, options.sink, write=None)
        connect, check = type(self).connect, self._check_settings()
        return BatchWriter(options.sink, connect, plan, options.version, check)

    @without_frames
    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> StreamWriter:
        from eos_sink.spark.writers import StreamWriter

        if self._committing is not None:
            # The process of commit() and abort() must not join the group or recover.
            return StreamWriter(self._committing, type(self).connect, None)
        from eos_sink.options import parse_options

        options = parse_options(self._all_options())
        plan = self._plan(schema, options)
        return StreamWriter(options, type(self).connect, plan, self._check_settings())

    def _plan(self, schema: StructType, options: SinkOptions, **known: None) -> Plan:
        from eos_sink.spark.sink_writer import freeze_garbage_collector

        freeze_garbage_collector()
        from eos_sink.driver.planner import Planner
        from eos_sink.messages import named
        from eos_sink.spark.nested_fields import check_nested_fields
        from eos_sink.task.schema import check_columns

        check_nested_fields(schema)
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(types, options.topic, options.timestamp_column)
        kept = _planners.lease(options, lambda: Planner(type(self).connect(options), options))
        with named(options.names, options.log_topic, **known), kept as planner:
            return planner.plan()


def with_defaults(defaults: Defaults) -> type[KafkaEosDataSource]:
    """The source with a session's defaults in it. Being local, it is pickled with all it holds."""

    class WithDefaults(KafkaEosDataSource):
        pass

    WithDefaults.defaults = defaults
    return WithDefaults
