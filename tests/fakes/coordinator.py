"""The transaction coordinator: producer ids, epochs, and one transaction at a time for each id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from eos_sink.protocol.values import (
    EndOutcome,
    ProducerFenced,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionStatus,
)
from tests.fakes.clock import FakeClock
from tests.fakes.group import Groups
from tests.fakes.log import Outcome, Txn

_ENDING = {
    True: TransactionStatus.PREPARE_COMMIT,
    False: TransactionStatus.PREPARE_ABORT,
}
_ENDED = {
    True: (TransactionStatus.COMPLETE_COMMIT, Outcome.COMMITTED),
    False: (TransactionStatus.COMPLETE_ABORT, Outcome.ABORTED),
}


@dataclass
class _Registration:
    """What the coordinator keeps of one transactional id."""

    producer_id: int
    epoch: int
    timeout_ms: int
    status: TransactionStatus = TransactionStatus.EMPTY
    started_ms: int = -1
    txn: Txn | None = None
    ending: Txn | None = None
    """It waits for markers."""


class Coordinator:
    """Judges requests as `TransactionCoordinator` does, EndTxn as its version 4."""

    def __init__(self, clock: FakeClock, groups: Groups) -> None:
        self.history: list[Txn] = []
        """Every transaction that ever held a record or an offset, in order."""
        self.on_end: Callable[[Transaction, bool], None] = lambda _, __: None
        """Called before an EndTxn takes effect, with its outcome."""
        self.off_ms: dict[str, int] = {}
        """By id, how far its coordinator's clock is ahead of the others'."""
        self._clock = clock
        self._groups = groups
        self._ids: dict[str, _Registration] = {}
        self._producer_ids = count(1000)
        clock.listen(self.expire)

    def init(self, transactional_id: str, timeout_ms: int) -> ProducerIdentity:
        """InitProducerId: abort what is open, then take the next epoch."""
        known = self._ids.get(transactional_id)
        if known is None:
            known = _Registration(next(self._producer_ids), -1, timeout_ms)
            self._ids[transactional_id] = known
        if known.txn is not None:
            self._finish(known, commit=False)
        known.epoch += 1
        known.timeout_ms = timeout_ms
        if known.ending is None:
            known.status = TransactionStatus.EMPTY
        return ProducerIdentity(known.producer_id, known.epoch)

    def is_ending(self, transactional_id: str) -> bool:
        """CONCURRENT_TRANSACTIONS: markers of its last transaction are missing."""
        known = self._ids.get(transactional_id)
        if known is None or known.ending is None:
            return False
        known.ending.write_markers()
        if known.ending.unmarked:
            return True
        known.status = _ENDED[known.ending.outcome is Outcome.COMMITTED][0]
        known.ending = None
        return False

    def write_markers(self) -> None:
        """Partitions have leaders again, so the coordinator's retries reach them."""
        for txn in self.history:
            txn.write_markers()
        for name in self._ids:
            self.is_ending(name)

    def open(self, transactional_id: str, producer: ProducerIdentity) -> Txn:
        """AddPartitionsToTxn and AddOffsetsToTxn: the open transaction, or a new one under the
        same epoch, also after another client's EndTxn has ended the one before."""
        known = self._ids.get(transactional_id)
        if known is None or producer != ProducerIdentity(known.producer_id, known.epoch):
            raise ProducerFenced(f"{transactional_id}: {producer} is not the current producer")
        if known.txn is None:
            known.txn = Txn(transactional_id, known.producer_id, known.epoch)
            known.status = TransactionStatus.ONGOING
            known.started_ms = self._clock.ms
            self.history.append(known.txn)
        return known.txn

    def repeat_offsets(self, sent: Txn, group: str) -> None:
        """A TxnOffsetCommit of a transaction arrives once more. The group's coordinator takes it if
        one is open that has the group, under the same epoch (KIP-890 asks the transaction's)."""
        txn = self.find_open(sent.identity)
        if txn and group in {**txn.offsets, **txn.group_offsets}:
            txn.offsets.update(sent.offsets)
            txn.group_offsets.update(sent.group_offsets)

    def end(self, transaction: Transaction, commit: bool) -> EndOutcome:
        """EndTxn: repeatable with the same outcome under the same epoch, else refused."""
        known = self._ids.get(transaction.transactional_id)
        if known is None or (known.producer_id, known.epoch) != (
            transaction.producer_id,
            transaction.epoch,
        ):
            return EndOutcome.REFUSED
        if known.txn is not None:
            self.on_end(transaction, commit)
            self._finish(known, commit)
            return EndOutcome.DONE
        return EndOutcome.DONE if known.status is _ENDED[commit][0] else EndOutcome.REFUSED

    def find_open(self, transaction: Transaction) -> Txn | None:
        known = self._ids.get(transaction.transactional_id)
        txn = known and known.txn
        return txn if txn and txn.identity == transaction else None

    def expire(self) -> None:
        """Abort what is older than its timeout, and fence its producer."""
        for known in self._ids.values():
            if known.txn is not None and known.started_ms + known.timeout_ms <= self._clock.ms:
                self._finish(known, commit=False)
                known.epoch += 1

    def time_out(self, prefix: str = "") -> None:
        """The timeout of open transactions, without the wait."""
        for transactional_id in self.list_open(prefix):
            known = self._ids[transactional_id]
            self._finish(known, commit=False)
            known.epoch += 1

    def forget(self, transactional_id: str) -> None:
        """The id expires (`transactional.id.expiration.ms`)."""
        del self._ids[transactional_id]

    def list_open(self, prefix: str) -> list[str]:
        return [i for i, known in self._ids.items() if known.txn and i.startswith(prefix)]

    def list_all(self, prefix: str) -> list[str]:
        return [i for i in self._ids if i.startswith(prefix)]

    def describe(self, transactional_id: str) -> TransactionState:
        self.is_ending(transactional_id)
        known = self._ids.get(transactional_id)
        if known is None:
            missing = Transaction(transactional_id, -1, -1)
            return TransactionState(missing, TransactionStatus.MISSING, -1, -1)
        waiting = known.ending.unmarked if known.ending else []
        logs = known.txn.logs if known.txn else waiting
        return TransactionState(
            Transaction(transactional_id, known.producer_id, known.epoch),
            known.status,
            known.started_ms + self.off_ms.get(transactional_id, 0) if known.txn else -1,
            known.timeout_ms,
            tuple(dict.fromkeys((log.topic, log.partition) for log in logs)),
        )

    def pending(self, group: str) -> bool:
        """Whether an open transaction holds an offset of the group."""
        open_ = [known.txn for known in self._ids.values() if known.txn]
        return any(group in txn.offsets or group in txn.group_offsets for txn in open_)

    def _finish(self, known: _Registration, commit: bool) -> None:
        assert known.txn is not None
        known.status, outcome = _ENDED[commit]
        known.txn.finish(outcome)
        if known.txn.unmarked:
            known.status, known.ending = _ENDING[commit], known.txn
        if commit:
            for group, offset in known.txn.offsets.items():
                self._groups.commit(group, offset)
            for group, offsets in known.txn.group_offsets.items():
                self._groups.commit_offsets(group, offsets)
        known.txn = None
