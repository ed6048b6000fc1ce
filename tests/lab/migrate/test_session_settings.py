"""The session settings that concern the sink are assessed."""

from __future__ import annotations

import pytest

from eos_sink_lab.migrate.assess import assess_session
from eos_sink_lab.migrate.queries import Given, Place, Source, Verdict


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("spark.speculation", "true", Verdict.REFUSED),
        ("spark.speculation", "false", Verdict.SAME),
        ("spark.speculation", None, Verdict.UNREAD),
        ("spark.sql.streaming.checkpointLocation", "/c", Verdict.IGNORED),
        ("spark.kafka.clusters.a.auth.bootstrap.servers", "b:1", Verdict.REFUSED),
        ("spark.kafka.producer.cache.timeout", "1m", Verdict.IGNORED),
    ],
)
def test_a_setting_that_matters(name: str, value: str | None, verdict: Verdict) -> None:
    given = Given(name, value, Place("job.py", 1), "" if value else "f(...)")
    (finding,) = assess_session(Source("job.py", session=(given,)))
    assert finding.verdict is verdict


def test_other_settings_are_left_out() -> None:
    given = Given("spark.speculation.interval", "1s", Place("job.py", 1))
    assert list(assess_session(Source("job.py", session=(given,)))) == []
