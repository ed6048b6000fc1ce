"""docs/restart.md: from a restart to the first visible row."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import Publication, Results, measured_on, number, spread_text, table
from eos_sink.bench.result import spread

_PEERS = {
    "kafka-eos": "`kafka-eos`",
    "kafka": "Spark's own sink",
    "least": "a minimal Python sink",
}
_ENDED = {
    "clean": "stopped",
    "writing": "killed while its tasks wrote",
    "decided": "killed after the decision",
}


def lines(results: Results) -> Iterator[str]:
    result = results["restart"]
    yield measured_on(result)
    yield ""
    head = ("Sink", "ended before", "from `start()`, ms", "from the process, ms", "CPU, s", "n")
    rows = []
    for series in result.having("from start()"):
        whole, cpu = (result.one(what, **series.labels) for what in ("from the process", "CPU"))
        peer, ended = (str(series.labels[name]) for name in ("peer", "ended"))
        told = [spread_text(each.spread) for each in (series, whole, cpu)]
        rows.append((_PEERS[peer], _ENDED[ended], *told, str(series.spread.n)))
    yield from table(head, rows)
    for ended in ("clean", "writing"):
        pair = [
            list(result.having("from start()", peer=peer, ended=ended))
            for peer in ("kafka-eos", "kafka")
        ]
        if all(pair):
            (ours,), (theirs,) = pair
            over = spread(o - t for o, t in zip(ours.samples, theirs.samples, strict=False))
            yield f"- {_ENDED[ended]}: {number(over.median)} ms over Spark's own sink."


RESTART = Publication("restart", "restart.md", ("restart",), lines)
