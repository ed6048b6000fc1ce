"""The diagrams of the pages: bars in lanes, time going down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_REFUSAL = "#b3261e"


class Kind(Enum):
    """What a bar stands for: fill, stroke, dashes."""

    OPEN = ("#fff4d6", "#b58a1b", "5 3")
    COMMITTED = ("#dcf3e4", "#2f7d4f", "")
    ABORTED = ("#eceff2", "#8a97a5", "2 3")
    STEP = ("#e6eefc", "#3b66b0", "")
    REFUSED = ("#fbe4e2", _REFUSAL, "")
    PLAIN = ("#ffffff", "#8a97a5", "")
    DEAD = ("#ffffff", _REFUSAL, "1 4")


@dataclass(frozen=True)
class Bar:
    start: float
    end: float
    kind: Kind
    label: str = ""


@dataclass(frozen=True)
class Moment:
    """A line across all lanes."""

    at: float
    label: str
    bad: bool = False


@dataclass(frozen=True)
class Diagram:
    """A picture: its title, its description for readers who cannot see it, and its lanes."""

    title: str
    description: str
    lanes: tuple[tuple[str, tuple[Bar, ...]], ...]
    moments: tuple[Moment, ...] = ()


_O, _C, _A, _S = Kind.OPEN, Kind.COMMITTED, Kind.ABORTED, Kind.STEP
_P, _D = Kind.PLAIN, Kind.DEAD


def _settled(name: str, committed: float, repeated: Bar) -> tuple[str, tuple[Bar, ...]]:
    """A task whose transaction is open from the start, until the next start commits it; the
    repeated batch only counts its rows."""
    return name, (
        Bar(0, committed, _O, "open transaction"),
        Bar(committed, 6.6, _C, "committed"),
        repeated,
    )


DIAGRAMS = {
    "batch": Diagram(
        "A batch",
        "Spark's JVM notes the batch in its checkpoint. The planner plans, and two tasks write "
        "into transactions that stay open. The committer votes, decides with one record in the "
        "log, and commits each. Readers see the batch, and the JVM notes that it is done.",
        (
            (
                "Spark's JVM",
                (Bar(0, 1, _P, "notes offsets"), Bar(9, 10, _P, "notes commit")),
            ),
            ("planner", (Bar(1.1, 2.1, _S, "plan"),)),
            ("task 0", (Bar(2.3, 7.6, _O, "open transaction"), Bar(7.6, 10, _C, "committed"))),
            ("task 1", (Bar(2.4, 8.4, _O, "open transaction"), Bar(8.4, 10, _C, "committed"))),
            (
                "committer",
                (
                    Bar(4.7, 5.5, _S, "vote"),
                    Bar(5.8, 6.7, _S, "decide"),
                    Bar(7.2, 8.8, _S, "settle"),
                ),
            ),
            (
                "decision log",
                (Bar(0, 6.7, _P, "batch 6"), Bar(6.7, 10, _C, "batch 7: these two")),
            ),
            ("readers", (Bar(0, 7.6, _P, "batches up to 6"), Bar(7.6, 10, _P, "and batch 7"))),
        ),
        (Moment(6.7, "decided"),),
    ),
    "before": Diagram(
        "A crash before the decision",
        "The driver is killed while transactions are open and nothing is decided. The next start "
        "aborts them, and Spark repeats the batch.",
        (
            (
                "driver",
                (
                    Bar(0, 0.8, _S, "plan"),
                    Bar(3, 4.4, _D, "dead"),
                    Bar(4.4, 6.2, _S, "recover"),
                    Bar(8.6, 9.4, _S, "settle"),
                ),
            ),
            (
                "tasks",
                (
                    Bar(1, 5.2, _O, "open transactions"),
                    Bar(5.2, 6.2, _A, "aborted"),
                    Bar(6.4, 9, _O, "the same rows again"),
                    Bar(9, 10, _C, "committed"),
                ),
            ),
            (
                "decision log",
                (
                    Bar(0, 4.9, _P, "batch 6"),
                    Bar(4.9, 8.4, _P, "batch 6 again"),
                    Bar(8.4, 10, _C, "batch 7"),
                ),
            ),
            (
                "readers",
                (Bar(0, 9, _P, "batches up to 6"), Bar(9, 10, _P, "batch 7")),
            ),
        ),
        (Moment(3, "killed", bad=True), Moment(8.4, "decided")),
    ),
    "after": Diagram(
        "A crash after the decision",
        "The driver is killed when one of three transactions is committed. The next start commits "
        "the others. Spark repeats the batch, and its rows are only counted.",
        (
            (
                "driver",
                (
                    Bar(0, 0.6, _S, "vote"),
                    Bar(1.2, 2.2, _S, "settle"),
                    Bar(2.2, 4.4, _D, "dead"),
                    Bar(4.4, 6.2, _S, "recover: settle"),
                ),
            ),
            (
                "task 0",
                (
                    Bar(0, 1.8, _O, "open"),
                    Bar(1.8, 6.6, _C, "committed"),
                    Bar(6.8, 8.6, _P, "counts its rows"),
                ),
            ),
            _settled("task 1", 5.2, Bar(6.8, 8.6, _P, "counts its rows")),
            _settled("task 2", 5.6, Bar(6.8, 8.6, _P, "counts its rows")),
            (
                "decision log",
                (
                    Bar(0, 0.9, _P, "batch 6"),
                    Bar(0.9, 10, _C, "batch 7: these three"),
                ),
            ),
            (
                "Spark",
                (
                    Bar(4.4, 6.6, _P, "starts again"),
                    Bar(6.6, 8.8, _P, "repeats batch 7"),
                    Bar(8.8, 10, _P, "batch 8"),
                ),
            ),
        ),
        (Moment(0.9, "decided"), Moment(2.2, "killed", bad=True)),
    ),
    "zombie": Diagram(
        "A driver that was thought dead",
        "The old driver is frozen before its decision. A new one joins the group, fences the "
        "plans, aborts open transactions and writes the batch. The old one wakes up, and its "
        "decision is refused.",
        (
            (
                "old driver",
                (
                    Bar(0, 0.8, _S, "plan"),
                    Bar(2.6, 7.6, _D, "frozen"),
                    Bar(7.6, 9.4, Kind.REFUSED, "decide: refused"),
                ),
            ),
            ("its tasks", (Bar(0.8, 4.4, _O, "open transactions"), Bar(4.4, 5.2, _A, "aborted"))),
            ("new driver", (Bar(3, 4.8, _S, "join, fence, abort"), Bar(6.4, 7.4, _S, "settle"))),
            ("its tasks", (Bar(4.9, 7, _O, "the same rows"), Bar(7, 10, _C, "committed"))),
            (
                "decision log",
                (
                    Bar(0, 4, _P, "4: batch 6"),
                    Bar(4, 6.2, _P, "5: batch 6 again"),
                    Bar(6.2, 10, _C, "6: batch 7"),
                ),
            ),
        ),
        (Moment(2.6, "frozen", bad=True), Moment(7.6, "wakes")),
    ),
    "expired": Diagram(
        "A decided transaction that is lost",
        "After the decision the driver is dead for longer than the transaction timeout, and Kafka "
        "aborts one transaction. The next start commits the others, finds the lost one by reading "
        "one of its records, and the repeated batch writes exactly that partition again.",
        (
            (
                "driver",
                (
                    Bar(0.8, 4.6, _D, "dead"),
                    Bar(4.6, 6.4, _S, "settle, check"),
                    Bar(8.4, 9.4, _S, "settle"),
                ),
            ),
            _settled("task 0", 5.2, Bar(6.7, 8, _P, "counts")),
            _settled("task 1", 5.6, Bar(6.7, 8, _P, "counts")),
            (
                "task 2",
                (
                    Bar(0, 3, _O, "open transaction"),
                    Bar(3, 6.6, _A, "timed out: lost"),
                    Bar(6.7, 9, _O, "writes again"),
                    Bar(9, 10, _C, "committed"),
                ),
            ),
            (
                "decision log",
                (
                    Bar(0, 8.2, _C, "batch 7: these three"),
                    Bar(8.2, 10, _C, "batch 7, one new"),
                ),
            ),
        ),
        (
            Moment(0.8, "killed", bad=True),
            Moment(3, "timeout", bad=True),
            Moment(8.2, "decided again"),
        ),
    ),
    "checkpoint": Diagram(
        "A checkpoint is replaced",
        "The driver is killed after it has decided batch 41 together with the source's offsets. "
        "The checkpoint is deleted. starting_offsets commits what is still open, and the new "
        "checkpoint begins exactly after batch 41.",
        (
            (
                "driver",
                (
                    Bar(0, 2.6, _S, "decides batch 41"),
                    Bar(2.6, 4.8, _D, "dead"),
                    Bar(4.8, 6.4, _S, "starting offsets"),
                    Bar(6.8, 10, _S, "writes on"),
                ),
            ),
            (
                "its tasks",
                (Bar(0, 5.6, _O, "open transactions"), Bar(5.6, 10, _C, "committed")),
            ),
            (
                "log, and source's group",
                (Bar(0, 2, _P, "offsets of 40"), Bar(2, 10, _C, "offsets of 41")),
            ),
            (
                "checkpoint",
                (
                    Bar(0, 4, _P, "up to 40; 41 begun"),
                    Bar(6.6, 10, _P, "new: begins after 41"),
                ),
            ),
        ),
        (Moment(2, "decided"), Moment(2.6, "killed", bad=True), Moment(4, "deleted", bad=True)),
    ),
}
