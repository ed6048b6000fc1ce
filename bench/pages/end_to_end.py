"""The results of `bench.end_to_end`: how old a row is when a `read_committed` reader gets it."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.pages.publication import (
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import Result, ratio
from eos_sink_lab.verify.pages import BLUE, INK, STYLE, WIDTH, render_svg

NAME = "end-to-end"
OURS, THEIRS, ASYNC = "kafka-eos", "kafka", "asynchronous progress"
FLINK, STREAMS = "flink", "streams"
PEERS = (OURS, f"{OURS}, {ASYNC}", THEIRS, f"{THEIRS}, {ASYNC}", FLINK, STREAMS)
STEPS = ("triggerExecution", "addBatch", "walCommit", "commitOffsets")
_TITLES = {
    OURS: "kafka-eos",
    THEIRS: "Spark's own Kafka sink, at least once",
    FLINK: "Flink's KafkaSink, exactly once, a checkpoint every second",
    STREAMS: "Kafka Streams, exactly_once_v2, a commit every 100 ms",
}
_ALT = "Milliseconds from a row's creation to its reader, by sink: the median and p99"


def lines(results: Results) -> Iterator[str]:
    """Percentiles of each peer, and the medians of Spark's steps."""
    result = results[NAME]
    yield (
        f"Measured {measured_on(result)} {result.parameters['rounds']} rounds in turns of "
        f"{result.parameters['seconds']:.0f} s; the median of the turns, and nine of ten of them. "
        f"The machine's load was {result.machine['load'][1]}."
    )
    yield ""
    heads = ("", "p50, ms", "p99, ms", "p50, times", "p99, times", *STEPS)
    yield from table(heads, list(_rows(result)))
    yield f"![{_ALT}](../../docs/bench/end-to-end.svg)"


def times_as_old(result: Result, part: str, peer: str = OURS) -> float | None:
    """The median of what `peer` makes of the age of a row with Spark's own sink.

    Args:
        part: "p50" or "p99".

    Returns:
        None where the result lacks one of the two.
    """
    ours, theirs = (result.find(part, peer=each) for each in (peer, THEIRS))
    return ratio(ours.samples, theirs.samples).median if ours and theirs else None


def _rows(result: Result) -> Iterator[tuple[str, ...]]:
    for peer in PEERS:
        p50, p99 = (result.find(part, peer=peer) for part in ("p50", "p99"))
        if p50 is None or p99 is None:
            continue
        times = (times_as_old(result, part, peer) for part in ("p50", "p99"))
        steps = [result.find(step, peer=peer) for step in STEPS]
        yield (
            _title(peer),
            spread_text(p50.spread),
            spread_text(p99.spread),
            *("-" if each is None else number(each) for each in times),
            *("-" if each is None else number(each.spread.median) for each in steps),
        )


def _title(peer: str) -> str:
    sink, *how = peer.split(", ")
    return ", ".join([_TITLES[sink], *how])


def plot(results: Results) -> str:
    """A line from the median to p99 for each peer."""
    result = results[NAME]
    peers = [peer for peer in PEERS if list(result.having("p50", peer=peer))]
    with mpl.rc_context(STYLE):
        height = 1.2 + 0.36 * len(peers)
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        for place, peer in enumerate(peers):
            p50, p99 = (result.one(part, peer=peer).spread.median for part in ("p50", "p99"))
            color = BLUE if peer.startswith(OURS) else INK
            axes.plot((p50, p99), (place, place), color=color, linewidth=5, alpha=0.3)
            axes.plot(p50, place, "o", color=color)
            axes.plot(p99, place, "|", color=color, markersize=12)
        axes.set_yticks(range(len(peers)), [_title(peer) for peer in peers])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("milliseconds from a row's creation to its reader: median and p99")
        return render_svg(figure)


PUBLICATION = Publication("end to end", RESULTS_PAGE, (NAME,), lines, {"end-to-end.svg": plot})
