"""The requests to a loop and its answers: one line of words each, in Python and in Java."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """One measured stretch of poll, process, produce.

    Attributes:
        bootstrap: of the brokers.
        input: the topic that is read, with `read_committed`.
        output: the topic that is written, to all of its partitions in turns.
        group: of the consumer, and the transactional id.
        partitions: of the output.
        interval_ms: from the begin of a transaction to its commit.
        seconds: how long it is played, from the first record on; three transactions at least.
        declared: all partitions are added to each transaction before its first record.
    """

    bootstrap: str
    input: str
    output: str
    group: str
    partitions: int
    interval_ms: float
    seconds: float
    declared: bool

    def line(self) -> str:
        return _line(asdict(self))

    @staticmethod
    def parse(line: str) -> Turn:
        words: dict[str, Any] = _words(line)
        for name, kind in {"partitions": int, "interval_ms": float, "seconds": float}.items():
            words[name] = kind(words[name])
        return Turn(**{**words, "declared": words["declared"] == "true"})


@dataclass(frozen=True)
class Played:
    """The result of a turn.

    Attributes:
        records: how many were written.
        seconds: from the first record to the last commit.
        transactions: how many were committed.
        requests: how many the producer has sent, by kind; empty where the client does not tell.
    """

    records: int
    seconds: float
    transactions: int
    requests: dict[str, int]

    def line(self) -> str:
        played = {name: word for name, word in asdict(self).items() if name != "requests"}
        return _line({**played, **self.requests})

    @staticmethod
    def parse(line: str) -> Played:
        words = _words(line)
        return Played(
            records=int(words.pop("records")),
            seconds=float(words.pop("seconds")),
            transactions=int(words.pop("transactions")),
            requests={kind: int(count) for kind, count in words.items()},
        )


def _line(words: dict[str, object]) -> str:
    return " ".join(f"{name}={_text(word)}" for name, word in words.items())


def _text(word: object) -> str:
    return str(word).lower() if isinstance(word, bool) else str(word)


def _words(line: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in line.split())
    return {name: text for name, _, text in pairs}
