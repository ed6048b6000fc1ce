"""What the demo sees of a run from outside, through Kafka alone."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from eos_sink.demo.ledger import Ledger
from eos_sink.demo.reader import Tail

_A_BURST = 1_000
_QUIET_LOOKS = 3
_QUIET_S = 0.06
_FIND_TIMEOUT_S = 10.0
_LOG_WAIT_MS = 10


class Watch:
    """Live readers of one run: what is written, what is visible, what is decided.

    Args:
        bootstrap: the cluster.
        topic: the run's topic.
        partitions: how many it has.
        batches: rows of each batch.
        log_topic: the decision log to watch, None for a sink without one.

    Attributes:
        visible: the account of the read_committed reader.
        records: records in the topic, visible or not.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        batches: tuple[int, ...],
        log_topic: str | None,
    ) -> None:
        self._bootstrap = bootstrap
        self._log_topic = log_topic
        self._batches = batches
        self._written = Tail(bootstrap, topic, partitions, committed=False)
        self._committed = Tail(bootstrap, topic, partitions, committed=True)
        self._log: Tail | None = None
        self._decisions = 0
        self.visible = Ledger(batches)
        self.records = 0
        self._in_life: dict[int, int] = {}
        self._decisions_before: dict[int, int] = {}

    def look(self, wait_s: float) -> None:
        """Take in what has come; waits for it up to `wait_s` seconds."""
        written = self._written.read(wait_s)
        for record in written:
            self.records += 1
            batch = self.visible.batch_of(record.row)
            if batch is None:
                continue
            if batch not in self._in_life:
                self._in_life[batch] = 0
                self._decisions_before[batch] = self._decisions
            self._in_life[batch] += 1
        if len(written) < _A_BURST:  # in a burst the strike's moment counts, not the screen
            for record in self._committed.read(0):
                self.visible.add(record.partition, record.key, record.row)
        while self._log is not None and self._log.next_record(0):
            self._decisions += 1

    def drain(self) -> None:
        """Look until nothing more comes: for when the driver stands still."""
        quiet = 0
        while quiet < _QUIET_LOOKS:
            before = (self.records, self.visible.count().records, self._decisions)
            self.look(_QUIET_S)
            now = (self.records, self.visible.count().records, self._decisions)
            quiet = quiet + 1 if now == before else 0

    def new_life(self) -> None:
        """A driver has been started: what was written so far is another's."""
        self.drain()
        self._in_life.clear()
        self._decisions_before.clear()

    def find_log(self) -> None:
        """Watch the decision log from now on, if it exists by now."""
        if self._log_topic is None or self._log is not None:
            return
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 2})
        topic = admin.list_topics(timeout=_FIND_TIMEOUT_S).topics.get(self._log_topic)
        if topic is not None and topic.partitions:
            self._log = Tail(
                self._bootstrap,
                self._log_topic,
                len(topic.partitions),
                committed=True,
                wait_ms=_LOG_WAIT_MS,
            )

    @property
    def decides(self) -> bool:
        """Whether the sink has a decision log."""
        return self._log_topic is not None

    def current_batch(self) -> int | None:
        """The batch that this life of the driver is at, None before its first row."""
        return max(self._in_life, default=None)

    def written(self, batch: int) -> int:
        """Rows of the batch that this life of the driver has on the brokers."""
        return self._in_life.get(batch, 0)

    def whole(self, batch: int) -> bool:
        """Whether all rows of the batch are on the brokers."""
        return self.written(batch) >= self._batches[batch]

    def decided(self, batch: int) -> bool:
        """Whether all rows are there and the sink has decided on them, if it does such a thing."""
        if self._log_topic is None:
            return self.whole(batch)
        before = self._decisions_before.get(batch, self._decisions)
        return self.whole(batch) and self._decisions > before

    def close(self) -> None:
        for tail in (self._written, self._committed, self._log):
            if tail is not None:
                tail.close()
