"""docs/restart.md: from a restart to the first visible row."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pages.publication import Publication, Results, measured_on, number, spread_text, table
from bench.result import spread

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
_ARCHIVE = {"": "", "unzipped": "removed"}
_COMPARED = (
    ("clean", "", "kafka"),
    ("clean", "", "least"),
    ("clean", "unzipped", "least"),
    ("writing", "", "kafka"),
)


def lines(results: Results) -> Iterator[str]:
    result = results["restart"]
    yield measured_on(result)
    yield ""
    head = (
        "Sink",
        "ended before",
        "`pyspark.zip`",
        "from `start()`, ms",
        "from the process, ms",
        "CPU, s",
        "n",
    )
    rows = []
    for series in result.having("from start()"):
        whole, cpu = (result.one(what, **series.labels) for what in ("from the process", "CPU"))
        peer, ended = (str(series.labels[name]) for name in ("peer", "ended"))
        told = [spread_text(each.spread) for each in (series, whole, cpu)]
        archive = _ARCHIVE[str(series.labels["archive"])]
        rows.append((_PEERS[peer], _ENDED[ended], archive, *told, str(series.spread.n)))
    yield from table(head, rows)
    for ended, archive, peer in _COMPARED:
        pair = [
            list(result.having("from the process", peer=each, ended=ended, archive=archive))
            for each in ("kafka-eos", peer)
        ]
        if all(pair):
            (ours,), (theirs,) = pair
            more = spread(o - t for o, t in zip(ours.samples, theirs.samples, strict=False))
            without = ", without `pyspark.zip`" if archive else ""
            yield f"- {_ENDED[ended]}{without}: {number(more.median)} ms more than {_PEERS[peer]}."


RESTART = Publication("restart", "restart.md", ("restart",), lines)
