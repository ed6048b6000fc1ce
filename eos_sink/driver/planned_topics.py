"""Keeps what a planner knows of the query's topics, for as long as it holds."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from eos_sink.decision_log.hanging import topics_of
from eos_sink.decision_log.other_logs import check_no_logs
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.kafka.read_topic_rules import read_topic_rules
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Decision
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.sink_options import SinkOptions

_AGE_S = 60.0
_LOGGER = logging.getLogger("eos_sink.driver")


class PlannedTopics:
    """Finds what tasks need not ask for, because their plan has it."""

    def __init__(self, kafka: Kafka, options: SinkOptions) -> None:
        self._kafka = kafka
        self._options = options
        self._rules: tuple[dict[str, TopicRules], Deadline] | None = None
        self._ids: tuple[Mapping[str, str], Deadline] | None = None

    def forget(self) -> None:
        """Ask again: a batch may have failed because a topic is another one now."""
        self._rules = self._ids = None

    def check(self, deadline: Deadline) -> None:
        """Check that rows can be written to the topics that the options name.

        Raises:
            ClusterError, ConfigurationError: they cannot.
        """
        declared, letters = self._options.destinations, self._options.dead_letter_topic
        if declared is not None:
            from eos_sink.driver.check_destinations import check_destinations

            views = self._kafka.describe_topics(declared.topics, deadline)
            for warning in check_destinations(declared, views):
                _LOGGER.warning("%s", warning)
        elif self._options.topic is not None:
            self._kafka.check_topic(self._options.topic, deadline)
        # First, so that no error advises to change the cleanup.policy of a log.
        check_no_logs(self._kafka, self._options.named_topics, deadline)
        if letters is not None:
            self._kafka.check_topic(letters, deadline)
            rules = read_topic_rules(self._kafka, [letters], deadline)[letters]
            if rules is not None and rules.keyed:
                raise stop(Reason.KEYED_DEAD_LETTERS, topic=letters)

    def read_rules(self, decision: Decision | None, deadline: Deadline) -> dict[str, TopicRules]:
        """The rules of the topics that are known here. A task asks again before it rejects a row.
        Without dead letters they only bound record batches: as far as they may be seen, and once,
        since a batch that is refused is repeated by a new plan."""
        options = self._options
        letters = options.dead_letter_topic
        if self._rules is None or (letters is not None and self._rules[1].passed):
            written = decision.topics if decision and not options.topic else ()
            names = sorted({*options.named_topics, *written})
            found = read_topic_rules(self._kafka, names, deadline, hidden=letters is None)
            there = {name: rules for name, rules in found.items() if rules is not None}
            self._rules = there, Deadline(_AGE_S)
        return self._rules[0]

    def read_ids(self, decision: Decision | None, deadline: Deadline) -> dict[str, str]:
        """The ids of the topics that are known here. A batch is not decided if they have others by
        then, and the plan after that asks again. So does each one of a batch write: between two of
        them a topic is often made again."""
        if self._ids is None or self._ids[1].passed:
            ids = self._kafka.topic_ids(topics_of(self._options, decision), deadline)
            self._ids = ids, Deadline(0 if self._options.origin.batch else _AGE_S)
        # Another topic of the column is as its batch has found it.
        return {**(decision.topics if decision else {}), **self._ids[0]}
