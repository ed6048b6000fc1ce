"""Assesses each option, call and session setting of a query.

The sink's own parser decides whether it accepts an option (`eos_sink_lab.migrate.acceptance`); the
tables of `eos_sink.options` and `eos_sink.kafka_config` decide how it treats an accepted one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eos_sink.errors import ConfigurationError
from eos_sink.identity import query_origin
from eos_sink.kafka_config.check_setting import check_setting, find_setting, is_known, is_secret
from eos_sink.kafka_config.java_settings import Handling
from eos_sink.options import Kind, kind_of
from eos_sink_lab.migrate.acceptance import ANY_TEXT, IDENTITY, Acceptance, try_options
from eos_sink_lab.migrate.queries import EOS, KAFKA, Finding, Given, Query, Source, Verdict, Way

HIDDEN = "***"

_VERDICTS = {
    Handling.SAME: Verdict.SAME,
    Handling.OWNED: Verdict.SAME,
    Handling.TRANSLATED: Verdict.TRANSLATED,
    Handling.IGNORED: Verdict.IGNORED,
}
_SAME = (Verdict.SAME, "")
_NO_UPDATE = (
    Verdict.REFUSED,
    "Spark allows no update mode for a sink in Python. Use append or complete; or keep update, "
    "and write each batch with df.write in foreachBatch (docs/batch.md).",
)
_APPEND = '.mode("append"): Spark allows a sink in Python no other mode that adds rows.'
_NO_BATCHES = (
    Verdict.REFUSED,
    "The trigger has no micro-batches, which the sink needs: use processingTime or availableNow.",
)
_CALLS = {
    "format": {KAFKA: (Verdict.CHANGE, f'format("{EOS}")'), EOS: _SAME},
    "outputMode": {"append": _SAME, "complete": _SAME, "update": _NO_UPDATE},
    "mode": {
        "append": _SAME,
        "overwrite": (Verdict.REFUSED, f"A topic cannot be overwritten. {_APPEND}"),
        **dict.fromkeys(
            ("ignore", "error", "errorifexists", "default"), (Verdict.REFUSED, _APPEND)
        ),
    },
}
_TRIGGERS = {
    **dict.fromkeys(("processingTime", "availableNow", "once"), _SAME),
    **dict.fromkeys(("continuous", "realTime"), _NO_BATCHES),
}
# Names, or prefixes that end with a dot; Spark's are case-sensitive.
_SESSION = {
    "spark.speculation": (
        Verdict.REFUSED,
        "Two attempts of one task cannot share a transaction. Set it to false.",
    ),
    "spark.sql.streaming.checkpointLocation": (
        Verdict.IGNORED,
        "A sink does not see it: set checkpointLocation or eos.id on the query.",
    ),
    "spark.kafka.clusters.": (
        Verdict.REFUSED,
        "Spark's delegation tokens stay in its JVM, where this sink cannot read them. Set "
        "kafka.security.protocol and kafka.sasl.* on the query; a source can keep the tokens.",
    ),
    "spark.kafka.producer.cache.": (
        Verdict.IGNORED,
        "It configures the producer cache of Spark's own sink. This sink keeps no producers "
        "between batches.",
    ),
}


def assess_query(query: Query, defaults: Sequence[Given] = ()) -> list[Finding]:
    """Assess each call and option of a query, and find what it lacks.

    Options without a writer lack nothing: the writer may give the rest, see `find_lacking`.

    Args:
        query: the query.
        defaults: options that the session gives where the query does not.
    """
    answer = try_options(query, defaults)
    last = {given.key: given for given in query.options}
    native = ({given.key: given for given in defaults} | last).get("eos.native")
    lingers = native is not None and (native.value is None or native.value.lower() == "false")
    found = [_assess_call(given) for given in query.calls]
    if query.way is Way.BATCH and query.call("mode") is None:
        found.append(Finding("mode", "", query.place, Verdict.MISSING, _APPEND))
    for given in query.options:
        if given.name is None:
            found.append(_finding(given, Verdict.UNREAD, f"{given.unread}."))
        elif last[given.key] is not given:
            note = f"It is given again: {last[given.key].place}."
            found.append(_finding(given, Verdict.IGNORED, note))
        else:
            found.append(_assess_option(given, given.name, answer, lingers=lingers))
    if query.way.writes:
        found += [
            Finding(name, "", query.place, Verdict.MISSING, _text(error))
            for name, error in answer.lacking.items()
        ]
    return found


def find_lacking(query: Query) -> list[str]:
    """Find the options that a query needs and does not show."""
    return sorted(try_options(query).lacking)


def assess_session(source: Source) -> Iterator[Finding]:
    """Assess the session's settings; those that do not concern the sink are left out."""
    for given in source.session:
        name = given.name or ""
        for rule, (verdict, note) in _SESSION.items():
            if name == "spark.speculation" == rule:
                if given.value is None:
                    yield _finding(given, Verdict.UNREAD, f"{given.unread}. {note}")
                elif given.value.strip().lower() == "false":
                    yield _finding(given, Verdict.SAME)
                else:
                    yield _finding(given, verdict, note)
            elif name == rule or (rule.endswith(".") and name.startswith(rule)):
                yield Finding(name, "", given.place, verdict, note)


def _assess_call(given: Given) -> Finding:
    name, value = given.name or "", given.value or ""
    if name.startswith("trigger."):
        unknown = Verdict.UNKNOWN, "Spark has no such trigger."
        verdict, note = _TRIGGERS.get(name.removeprefix("trigger."), unknown)
    elif given.unread:
        verdict, note = Verdict.UNREAD, f"{given.unread}."
    elif name == "queryName":
        verdict, note = _SAME
    else:
        unknown = Verdict.UNKNOWN, f"Known are {', '.join(_CALLS[name])}."
        verdict, note = _CALLS[name].get(value.lower(), unknown)
    return Finding(name, value, given.place, verdict, note)


def _assess_option(given: Given, name: str, answer: Acceptance, *, lingers: bool) -> Finding:
    kind = kind_of(name)
    if error := answer.errors.get(given.key):
        if kind is Kind.UNKNOWN or (kind is Kind.KAFKA and not is_known(_java_name(name))):
            return _finding(given, Verdict.UNKNOWN, _text(error))
        if given.value is None:
            return _finding(given, Verdict.UNREAD, f"{given.unread}.")
        return _finding(given, Verdict.REFUSED, _text(error))
    if conversion := answer.absent.get(given.key):
        note = f"The file is not here. PKCS#12 and PEM are read, JKS is refused. {conversion}"
        return _finding(given, Verdict.UNREAD, note)
    if kind is Kind.KAFKA:
        judgement = check_setting(
            _java_name(name), ANY_TEXT if given.value is None else given.value
        )
        verdict = _VERDICTS[judgement.handling]
        setting = find_setting(_java_name(name))
        if setting and setting.name == "linger.ms" and not lingers:
            verdict = Verdict.IGNORED
        return _finding(given, verdict, judgement.note)
    own = kind is Kind.OWN or given.key in IDENTITY
    return _finding(given, Verdict.SAME if own else Verdict.IGNORED)


def _finding(given: Given, verdict: Verdict, note: str = "") -> Finding:
    if given.unread and verdict is not Verdict.UNREAD:
        note = f"Any value will do; this one cannot be read here: {given.unread}. {note}".strip()
    shown = given.value or ""
    if given.name is None or given.value is None:
        shown = ""
    elif (
        verdict is Verdict.UNKNOWN
        or (given.key.startswith("kafka.") and not is_known(_java_name(given.name)))
        or is_secret(_java_name(given.name))
    ):
        shown = HIDDEN
    elif given.key == "checkpointlocation":
        shown = query_origin(None, given.value, None).checkpoint or ""
    return Finding(given.name or "?", shown, given.place, verdict, note)


def _text(error: ConfigurationError) -> str:
    return f"{error.message} {error.remedy}".removesuffix(" Nothing was written.")


def _java_name(name: str) -> str:
    return name.lower().removeprefix("kafka.")
