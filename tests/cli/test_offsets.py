"""`eos-sink offsets` as text."""

from __future__ import annotations

import json

from eos_sink.cli.offsets_command import make_report
from eos_sink.decision_log import LogEntry
from eos_sink.identity import QueryNames
from eos_sink.ops.source_position import SourceState
from eos_sink.protocol.model import BatchId, LogRecord, SourcePosition
from eos_sink.protocol.values import Position


def test_spark_takes_what_it_prints_after_a_topic_is_not_read_any_more() -> None:
    end = {("read", 0): 3}
    known = SourcePosition("readers", BatchId("s", 1), end, end, {("former", 0): 2})
    record = LogRecord(1, None, "w", source=known)
    state = SourceState(LogEntry(record, Position("log", 0, 0)), "readers", known, end, {})
    report = make_report(QueryNames("eos-sink-", "q-0123456789"), state)
    assert report.notes == [f"startingOffsets: {json.dumps({'read': {'0': 3}})}"]
    assert [row["partition"] for row in report.rows] == ["former[0]", "read[0]"]
