"""Topics that are the decision log of other queries, with an `eos.log.topic` of their own.

A row there would stop one of them, or be read as a decision of it. The configured log is known by
its name; any other one by its records. A single row with the content of a decision must not stop
the queries that write a topic: applications may forward any content.
"""

from __future__ import annotations

from collections.abc import Collection

from eos_sink.decision_log.codec import is_record
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop


def find_logs(kafka: Kafka, topics: Collection[str], deadline: Deadline) -> frozenset[str]:
    """Those of the topics of whose newest records most are decisions, as far as they can be read:
    this protects from mistakes, and the permissions on a log from everything else."""
    if not topics:
        return frozenset()
    newest = kafka.read_back().newest_values(topics, deadline)
    return frozenset(
        topic for topic, values in newest.items() if 2 * sum(map(is_record, values)) > len(values)
    )


def check_no_logs(kafka: Kafka, topics: Collection[str], deadline: Deadline) -> None:
    """Raises ConfigurationError if `find_logs` finds one of the topics."""
    for topic in sorted(find_logs(kafka, topics, deadline)):
        raise stop(Reason.IS_A_LOG, topic=topic)
