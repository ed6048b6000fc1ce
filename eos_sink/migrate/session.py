"""What becomes of settings of the Spark session that matter to the sink."""

from __future__ import annotations

from eos_sink.migrate.model import Finding, Given, Source, Verdict

# Names, or what they start with; Spark's are case-sensitive.
_RULES = {
    "spark.speculation": (
        Verdict.REFUSED,
        "Two attempts of one task cannot hold one transaction. Set it to false.",
    ),
    "spark.sql.streaming.checkpointLocation": (
        Verdict.IGNORED,
        "A sink does not see it: the query needs checkpointLocation or eos.id of its own.",
    ),
    "spark.kafka.clusters.": (
        Verdict.REFUSED,
        "Spark's delegation tokens stay in its JVM, where this sink cannot read them. Give the "
        "query kafka.security.protocol and kafka.sasl.* of its own; a source can keep the tokens.",
    ),
    "spark.kafka.producer.cache.": (
        Verdict.IGNORED,
        "Spark's own sink keeps its producers by it. This sink keeps none between batches.",
    ),
}


def of_session(source: Source) -> list[Finding]:
    """What is said of the session's settings; the others do not concern the sink."""
    return [
        _finding(given, *_RULES[rule])
        for given in source.session
        for rule in _RULES
        if given.name == rule or (rule.endswith(".") and (given.name or "").startswith(rule))
    ]


def _finding(given: Given, verdict: Verdict, note: str) -> Finding:
    name = given.name or ""
    if name == "spark.speculation":
        if given.value is None:
            return Finding(name, "", given.place, Verdict.UNREAD, f"{given.unread}. {note}")
        off = given.value.strip().lower() == "false"
        kept = (Verdict.SAME, "") if off else (verdict, note)
        return Finding(name, given.value, given.place, *kept)
    return Finding(name, "", given.place, verdict, note)
