"""Sort out the rows that Kafka would refuse, for the dead letter topic.

A row that the brokers refuse fails its whole transaction, so it has to be found before it is sent.
The checks are the brokers' (`TopicRules`) and the client's. A topic's rules may have changed since
they were read: a row is rejected only by rules that its task has read itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from eos_sink.decision_log.other_logs import find_logs
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka, Sizes
from eos_sink.kafka.log_topic import LOG_PARTITIONS
from eos_sink.kafka.read_topic_rules import read_topic_rules
from eos_sink.kafka_config.destinations import is_topic_name, quote_name
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.rows.rows import Int64s, Rows, find_valid, find_wrong_keys, split_headers
from eos_sink.sink_options import SinkOptions
from eos_sink.task.dead_letters import Fault, to_dead_letters
from eos_sink.task.record_sizes import RecordSizes

_TOO_LARGE = "org.apache.kafka.common.errors.RecordTooLargeException"
_UNKNOWN = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
_BAD_NAME = "org.apache.kafka.common.errors.InvalidTopicException"
_BAD_TIME = "org.apache.kafka.common.errors.InvalidTimestampException"
_BAD_RECORD = "org.apache.kafka.common.InvalidRecordException"
_BAD_ARGUMENT = "java.lang.IllegalArgumentException"

# librdkafka's defaults of `message.max.bytes` and of `batch.size`, and its limit of the former.
_CLIENT_BYTES, _MOST_BYTES = 1_000_000, 1_000_000_000
# The largest dead letter, even if its topic takes more: the room that the queue of a task has
# anyway. With more of it librdkafka would keep more small ones, too.
_LETTER_BYTES = 48 * 1024 * 1024
# Dead letters are made and sent in slices, so that they take no second Arrow batch of memory.
_SLICE_BYTES, _SLICE_ROWS = 1024 * 1024, 1_000
# A row may be on its way for some time, and clocks differ: at most a tenth of what a topic allows.
_CLOCKS_MS, _CLOCKS_SHARE = 10_000, 10
# A new topic is not known to all brokers at once.
_MISSING_S, _ASK_AGAIN_S, _MOST_MISSING = 5.0, 0.2, 10_000
# A task waits once for each topic, and together not longer than for two.
_MOST_WAITS = 2
_UNLIMITED = TopicRules(2**31, 2**62)

# Topics that this process has waited for: rows of later batches need not wait again.
_missing: set[str] = set()

Mask = npt.NDArray[np.bool_]


Found = Iterator[tuple[Mask, Callable[[int], Fault]]]
"""Which rows are refused by one check, and why the n-th one is."""


class RejectedRows:
    """Sorts out the rows of one task.

    Args:
        rules: what is known of topics.
        task: the number of the task.

    Attributes:
        counts: the rejected rows by the last part of their error's class.
    """

    def __init__(
        self,
        kafka: Kafka,
        options: SinkOptions,
        rules: Mapping[str, TopicRules],
        task: int,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        assert options.dead_letter_topic is not None
        self.counts: Counter[str] = Counter()
        self._kafka = kafka
        self._options = options
        self._topic = options.dead_letter_topic
        self._known: dict[str, TopicRules | None] = dict(rules)
        self._read: set[str] = set()
        self._logs: frozenset[str] = frozenset()
        self._task = task
        self._now_ms = now_ms
        settings = options.cluster.client.settings
        self._client_bytes = int(settings.get("message.max.bytes", _CLIENT_BYTES))
        room = int(settings.get("queue.buffering.max.kbytes", _LETTER_BYTES // 1024)) * 1024
        self._letter_bytes = max(self._client_bytes, min(room, _MOST_BYTES))
        propagation_ms = int(settings.get("topic.metadata.propagation.max.ms", _MISSING_S * 1000))
        self._missing_s = min(_MISSING_S, propagation_ms / 1000)
        self._patience_s = _MOST_WAITS * self._missing_s

    def know(self, rows: Rows) -> None:
        """Read the rules of the rows' topics, as far as they are not known."""
        self._learn(rows.topics[0])

    def sizes(self) -> Sizes:
        """Return the limits of a producer of these rows. Each known topic takes any batch of
        several records."""
        rules = [each for each in self._known.values() if each is not None]
        record = max(
            self._client_bytes, min(self._dead_letter_rules().max_bytes, self._letter_bytes)
        )
        least = min((each.sure_bytes for each in rules), default=_MOST_BYTES)
        return Sizes(record, max(1, min(least, _MOST_BYTES)))

    def sort_out(self, rows: Rows) -> tuple[Rows, Iterator[Rows]]:
        """The rows that Kafka takes, and the dead letters of the others, in slices that are made
        when they are asked for.

        Raises:
            ClusterError: the rules of a topic cannot be read.
            ProduceFailedError: from a slice: the dead letter topic does not take one of them, or
                the client has no room for it.
        """
        names, topics = rows.topics
        self._learn(names)
        faults = self._find_all(rows)
        if faults:
            suspects = {self._topic, *(names[topics[number]] for number in faults)}
            if not suspects <= self._read:
                self._learn(sorted(suspects - self._read), again=True)
                faults = self._find_all(rows)
        if not faults:
            return rows, iter(())
        self.counts.update(fault.error.rpartition(".")[2] for fault in faults.values())
        rejected = np.array(sorted(faults), np.int64)
        kept = np.delete(np.arange(len(rows), dtype=np.int64), rejected)
        return rows.take(kept), self._to_letters(rows, rejected, faults)

    def _to_letters(
        self, rows: Rows, rejected: Int64s, faults: Mapping[int, Fault]
    ) -> Iterator[Rows]:
        names, topics = rows.topics
        # The name of the topic becomes a header, and may be larger than all the rest.
        sizes = RecordSizes(rows).sizes()[0] + np.array([len(name) for name in names])[topics]
        ends = np.cumsum(sizes[rejected])
        slices = ends // _SLICE_BYTES + np.arange(len(rejected)) // _SLICE_ROWS
        most = Sizes(self._letter_bytes, self._dead_letter_rules().sure_bytes)
        for some in np.split(rejected, np.flatnonzero(np.diff(slices)) + 1):
            reasons = [faults[number] for number in some.tolist()]
            query = self._options.names.query
            yield to_dead_letters(rows.take(some), reasons, self._topic, most, query, self._task)

    # What is known of topics.

    def _learn(self, names: list[str], *, again: bool = False) -> None:
        """Ask for the topics that are not known, or for all of them again."""
        asked = [name for name in names if (again or name not in self._known)]
        asked = [
            name
            for name in asked
            if name == self._topic or (is_topic_name(name) and self._is_declared(name))
        ]
        if not asked:
            return
        deadline = Deadline(self._options.step_timeout)
        found = read_topic_rules(self._kafka, asked, deadline)
        until = Deadline(min(self._missing_s, self._patience_s))
        while not until.passed:
            missing = [name for name, rules in found.items() if rules is None]
            if not set(missing) - _missing:
                break
            time.sleep(_ASK_AGAIN_S)
            found |= read_topic_rules(self._kafka, missing, deadline)
        self._patience_s -= until.seconds - until.left
        if len(_missing) > _MOST_MISSING:
            _missing.clear()
        _missing.update(name for name, rules in found.items() if rules is None)
        if self._options.topic is None:
            asked_first = found.keys() - self._known.keys()
            like_logs = [name for name in asked_first if _is_like_log(found[name])]
            self._logs |= find_logs(self._kafka, like_logs, deadline)
        self._known |= found
        self._read.update(asked)

    def _is_declared(self, name: str) -> bool:
        declared = self._options.destinations
        return declared is None or name in declared.ranges

    def _dead_letter_rules(self) -> TopicRules:
        if self._known.get(self._topic) is None:
            self._known |= read_topic_rules(
                self._kafka, [self._topic], Deadline(self._options.step_timeout)
            )
        # Without the topic the producer's error names it.
        return self._known[self._topic] or _UNLIMITED

    def _rules(self, name: str) -> TopicRules:
        return self._known.get(name) or _UNLIMITED

    # The checks. The first one that finds a row gives the reason.

    def _find_all(self, rows: Rows) -> dict[int, Fault]:
        """The refused rows by number."""
        faults: dict[int, Fault] = {}
        names, topics = rows.topics
        rules = [self._rules(name) for name in names]
        checks = (
            self._find_wrong_topics(names, topics),
            self._find_wrong_partitions(rows),
            self._find_wrong_headers(rows),
            self._find_missing_keys(rows, rules),
            self._find_wrong_times(rows, rules),
            self._find_too_large(rows, rules),
        )
        for check in checks:
            for mask, explain in check:
                for number in np.flatnonzero(mask).tolist():
                    if number not in faults:
                        faults[number] = explain(number)
        return faults

    def _find_wrong_topics(self, names: list[str], topics: Int64s) -> Found:
        for index, name in enumerate(names):
            if not is_topic_name(name):
                what = f"cannot be written: {quote_name(name)}" if name else "is null or empty"
                fault = Fault(_BAD_NAME, f"The topic {what}.")
            elif name == self._options.log_topic or name in self._logs:
                # As the topics that only Kafka writes: the row is wrong, the others are not.
                fault = Fault(_BAD_NAME, f"Topic {name} is the decision log, which has no rows.")
            elif not self._is_declared(name):
                fault = Fault(_UNKNOWN, f"eos.destinations does not declare topic {name}.")
            elif self._known[name] is None and self._options.topic is None:
                fault = Fault(_UNKNOWN, f"Topic {name} does not exist.")
            else:
                # A missing topic of the option is no row's fault: the producer's error names it.
                continue
            yield topics == index, _always(fault)

    def _find_wrong_partitions(self, rows: Rows) -> Found:
        names, topics = rows.topics
        declared = self._options.destinations
        if rows.partition is None:
            for name in names:
                if declared and name in declared.ranges and not declared.allow(name, None):
                    raise declared.make_error(name, None)
            return
        given = rows.partition.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        named = find_valid(rows.partition)
        counts = np.array([self._rules(name).partitions for name in names], np.int64)
        below = named & (given < 0)
        yield below, lambda n: Fault(_BAD_ARGUMENT, f"The partition is {given[n]}, below 0.")
        beyond = named & (given >= counts[topics])
        yield (
            beyond,
            lambda n: Fault(
                _UNKNOWN,
                f"Topic {names[topics[n]]} has {counts[topics[n]]} partitions, and none of number "
                f"{given[n]}.",
            ),
        )
        if declared is None:
            return
        for topic, partition in np.unique(np.column_stack([topics, given]), axis=0).tolist():
            name = names[topic]
            number = partition if partition >= 0 else None
            if name in declared.ranges and not declared.allow(name, number):
                what = "a row without a partition" if number is None else f"partition {number}"
                fault = Fault(_UNKNOWN, f"eos.destinations does not declare {what} of {name}.")
                yield (topics == topic) & (given == partition), _always(fault)

    def _find_wrong_headers(self, rows: Rows) -> Found:
        if rows.headers is None:
            return
        counts, _, _ = split_headers(rows.headers)
        mask = np.zeros(len(rows), np.bool_)
        mask[np.repeat(np.arange(len(rows)), counts)[find_wrong_keys(rows.headers)]] = True
        what = "A header has no key, or one that is not UTF-8 or has a zero character."
        yield mask, _always(Fault(_BAD_ARGUMENT, what))

    def _find_missing_keys(self, rows: Rows, rules: list[TopicRules]) -> Found:
        keyed = np.array([each.keyed for each in rules], np.bool_)
        if not keyed.any():
            return
        names, topics = rows.topics
        missing = ~find_valid(rows.key) if rows.key is not None else np.ones(len(rows), np.bool_)
        yield (
            keyed[topics] & missing,
            lambda n: Fault(
                _BAD_RECORD, f"Topic {names[topics[n]]} is compacted, and the row has no key."
            ),
        )

    def _find_wrong_times(self, rows: Rows, rules: list[TopicRules]) -> Found:
        if rows.timestamp is None:
            return
        names, topics = rows.topics
        now = int(self._now_ms())
        given = rows.timestamp.fill_null(now).to_numpy(zero_copy_only=False).astype(np.int64)
        yield given < 1, lambda n: Fault(_BAD_ARGUMENT, f"The time {given[n]} ms is before 1970.")
        before, after = (
            np.array([_shorten(each) for each in limits], np.int64)
            for limits in zip(*((each.before_ms, each.after_ms) for each in rules), strict=True)
        )
        age = now - given
        yield (
            (age > before[topics]) | (-age > after[topics]),
            lambda n: Fault(
                _BAD_TIME,
                f"The time {given[n]} ms is {abs(age[n])} ms {'before' if age[n] > 0 else 'after'} "
                f"the present, too far for topic {names[topics[n]]} (message.timestamp.before.max."
                "ms, message.timestamp.after.max.ms).",
            ),
        )

    def _find_too_large(self, rows: Rows, rules: list[TopicRules]) -> Found:
        names, topics = rows.topics
        content = RecordSizes(rows)
        least = min(self._client_bytes, *(each.sure_bytes for each in rules))
        if content.bound <= least:
            return
        sent, stored = content.sizes()
        limits, sure = (
            np.array(each, np.int64)[topics]
            for each in zip(*((each.max_bytes, each.sure_bytes) for each in rules), strict=True)
        )
        yield (
            sent > self._client_bytes,
            lambda n: Fault(
                _TOO_LARGE,
                f"The row has {sent[n]} bytes, and kafka.max.request.size is {self._client_bytes}.",
            ),
        )
        yield (
            stored > sure,
            lambda n: Fault(
                _TOO_LARGE,
                f"A record batch of this row alone has {stored[n]} bytes uncompressed, and topic "
                f"{names[topics[n]]} has max.message.bytes={limits[n]}, "
                f"compression.type={rules[topics[n]].compression}.",
            ),
        )


def _is_like_log(rules: TopicRules | None) -> bool:
    return rules is not None and rules.keyed and rules.partitions == LOG_PARTITIONS


def _always(fault: Fault) -> Callable[[int], Fault]:
    return lambda _: fault


def _shorten(limit_ms: int) -> int:
    return limit_ms - min(_CLOCKS_MS, limit_ms // _CLOCKS_SHARE)
