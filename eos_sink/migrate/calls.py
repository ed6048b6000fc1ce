"""What becomes of the calls around the options: format, output mode, trigger, mode."""

from __future__ import annotations

from collections.abc import Iterator

from eos_sink.migrate.model import Finding, Given, Query, Verdict, Way
from eos_sink.migrate.python_file import EOS, KAFKA

_UPDATE = (
    "Spark allows no update mode for a sink in Python. Use append or complete; or keep update, "
    "and write each batch with df.write in foreachBatch (docs/batch.md)."
)
_NO_BATCHES = "It has no micro-batches that could be decided: use processingTime or availableNow."
_APPEND = '.mode("append"): Spark allows a sink in Python no other mode that adds rows.'
_MODES = {
    "append": (Verdict.SAME, ""),
    "overwrite": (Verdict.REFUSED, "A topic cannot be overwritten. " + _APPEND),
    "ignore": (Verdict.REFUSED, _APPEND),
    "error": (Verdict.REFUSED, _APPEND),
    "errorifexists": (Verdict.REFUSED, _APPEND),
    "default": (Verdict.REFUSED, _APPEND),
}
_KNOWN = {
    "format": {
        KAFKA: (Verdict.TRANSLATED, f'format("{EOS}")'),
        EOS: (Verdict.SAME, ""),
    },
    "outputMode": {
        "append": (Verdict.SAME, ""),
        "complete": (Verdict.SAME, ""),
        "update": (Verdict.REFUSED, _UPDATE),
    },
    "mode": _MODES,
}
_TRIGGERS = {
    "processingTime": (Verdict.SAME, ""),
    "availableNow": (Verdict.SAME, ""),
    "once": (Verdict.SAME, ""),
    "continuous": (Verdict.REFUSED, _NO_BATCHES),
    "realTime": (Verdict.REFUSED, _NO_BATCHES),
}


def of_calls(query: Query) -> Iterator[Finding]:
    """What is said of each call, and of a batch write that says no mode."""
    for given in query.calls:
        yield _of_call(given)
    if query.way is Way.BATCH and query.call("mode") is None:
        yield Finding("mode", "", query.place, Verdict.MISSING, _APPEND)


def _of_call(given: Given) -> Finding:
    name = given.name or ""
    value = given.value or ""
    if name.startswith("trigger."):
        verdict, note = _TRIGGERS.get(
            name.removeprefix("trigger."), (Verdict.UNKNOWN, "Spark has no such trigger.")
        )
    elif given.unread:
        verdict, note = Verdict.UNREAD, f"{given.unread}."
    elif name == "queryName":
        verdict, note = Verdict.SAME, ""
    else:
        verdict, note = _KNOWN[name].get(
            value.lower(), (Verdict.UNKNOWN, f"Known are {', '.join(_KNOWN[name])}.")
        )
    return Finding(name, value, given.place, verdict, note)
