"""The topics of a batch that is about to be decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.model import Decision, TaskReport
from eos_sink.sink_options import SinkOptions

if TYPE_CHECKING:
    from eos_sink.rows.rows import Rows


class DecidedTopics:
    """Keeps what the committer knows of topics."""

    def __init__(self, kafka: Kafka, options: SinkOptions) -> None:
        self._kafka = kafka
        self._checked = {options.topic}
        self._no_logs = set(options.named_topics)

    def ids_of(
        self, reports: Sequence[TaskReport], rows: Sequence[Rows], deadline: Deadline
    ) -> set[tuple[str, str]]:
        """Each topic of the rows, with its ids from before they were written."""
        known = {each for report in reports for each in report.topics.items()}
        new = {topic for some in rows for topic in some.topics[0]} - dict(known).keys()
        return known | {*self._kafka.topic_ids(new, deadline).items()} if new else known

    def check(self, decision: Decision, deadline: Deadline) -> None:
        """Topics of the column are known only now. A batch that may not be read back is not
        decided; inlined rows never need to be. Nor is one with rows in a decision log."""
        for topic in {entry.witness.topic for entry in decision.prepared} - self._checked:
            self._kafka.check_topic(topic, deadline)
            self._checked.add(topic)
        new = decision.topics.keys() - self._no_logs
        if new:
            from eos_sink.decision_log.other_logs import check_no_logs

            check_no_logs(self._kafka, new, deadline)
            self._no_logs |= new
