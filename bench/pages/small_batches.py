"""The results of `bench.small_batches`: what the sink adds to a batch with few rows."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import (
    PERFORMANCE_PAGE,
    RESULTS_PAGE,
    Publication,
    Results,
    measured_on,
    number,
    spread_text,
    table,
)
from bench.result import Result, Series, ratio, spread

NAME = "small-batches"
_FLOOR = "floor"
TITLES = {
    "kafka": "Spark's own Kafka sink",
    _FLOOR: "a Python sink that drops its rows",
    "kafka-eos": "kafka-eos",
    "linger.ms 0": "kafka-eos, `kafka.linger.ms` 0 (ignored)",
    "not inline": "kafka-eos, `eos.inline.bytes` 0",
}


def lines(results: Results) -> Iterator[str]:
    """addBatch by tasks and peer, and what each takes more than the sink that drops its rows."""
    result = results[NAME]
    yield (
        f"Measured {measured_on(result)} {result.parameters['rounds']} rounds in turns, "
        f"{result.parameters['cores']} tasks at the same time, Unix domain sockets. The machine's "
        f"load was {result.machine['load'][1]}."
    )
    for tasks in sorted({int(each.labels["tasks"]) for each in result.having("addBatch")}):
        yield ""
        yield f"1,000 rows in {tasks} tasks, milliseconds of addBatch:"
        yield ""
        heads = ("", "batches", "median", "p95", "added, median", "added, p95", "times", "CPU, ms")
        yield from table(heads, list(_rows(result, tasks)))


def _rows(result: Result, tasks: int) -> Iterator[tuple[str, ...]]:
    floor = _times(result, _FLOOR, tasks)
    for peer, title in TITLES.items():
        times = _times(result, peer, tasks)
        if times is None:
            continue
        found = times.spread
        cpu = _cpu(result, peer, tasks)
        row = (title, str(found.n), number(found.median), number(found.p95))
        if floor is None or times is floor:
            yield *row, "", "", "", cpu
            continue
        # Each batch with one of the same round, since the machine is not equally busy in all.
        pairs = zip(times.samples, floor.samples, strict=False)
        added = (
            spread(ours - dropped for ours, dropped in pairs).median,
            found.p95 - floor.spread.p95,
        )
        shown = (f"{each:+.0f}" for each in added)
        yield *row, *shown, spread_text(ratio(times.samples, floor.samples)), cpu


def added_ms(result: Result, tasks: int) -> tuple[float, float] | None:
    """Median and p95 of kafka-eos minus those of Spark's own sink."""
    ours, theirs = (_times(result, peer, tasks) for peer in ("kafka-eos", "kafka"))
    if ours is None or theirs is None:
        return None
    ahead, behind = ours.spread, theirs.spread
    return ahead.median - behind.median, ahead.p95 - behind.p95


def _cpu(result: Result, peer: str, tasks: int) -> str:
    """Of a batch: the medians of all processes."""
    used = result.having("cpu", peer=peer, tasks=tasks, sockets=True)
    return number(1000 * sum(each.spread.median for each in used))


def over_tcp(results: Results) -> Iterator[str]:
    """addBatch with TCP and with Unix domain sockets."""
    result = results[NAME]
    rows = []
    for peer, title in TITLES.items():
        tcp, sockets = (_times(result, peer, 200, way) for way in (False, True))
        if tcp is not None and sockets is not None:
            rows.append((title, *(_seconds(each) for each in (tcp, sockets))))
    heads = ("1,000 rows in 200 tasks, seconds of addBatch", "TCP (default)", "Unix domain sockets")
    yield from table(heads, rows)


def _seconds(times: Series) -> str:
    return spread_text(spread(each / 1000 for each in times.samples))


def _times(result: Result, peer: str, tasks: int, sockets: bool = True) -> Series | None:
    return result.find("addBatch", peer=peer, tasks=tasks, sockets=sockets)


PUBLICATIONS = (
    Publication("small batches", RESULTS_PAGE, (NAME,), lines),
    Publication("sockets", PERFORMANCE_PAGE, (NAME,), over_tcp),
)
