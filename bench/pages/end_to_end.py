"""The results of `bench.end_to_end`: how old a row is when a `read_committed` reader gets it."""

from __future__ import annotations

from collections.abc import Iterator

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


def _rows(result: Result) -> Iterator[tuple[str, ...]]:
    for peer in PEERS:
        sink, *how = peer.split(", ")
        p50, p99 = (next(result.having(name, peer=peer), None) for name in ("p50", "p99"))
        if p50 is None or p99 is None:
            continue
        theirs = [next(result.having(name, peer=THEIRS), None) for name in ("p50", "p99")]
        steps = [next(result.having(step, peer=peer), None) for step in STEPS]
        yield (
            ", ".join([_TITLES[sink], *how]),
            spread_text(p50.spread),
            spread_text(p99.spread),
            *(
                number(ratio(ours.samples, their.samples).median) if their else "-"
                for ours, their in zip((p50, p99), theirs, strict=True)
            ),
            *("-" if each is None else number(each.spread.median) for each in steps),
        )


PUBLICATION = Publication("end to end", RESULTS_PAGE, (NAME,), lines)
