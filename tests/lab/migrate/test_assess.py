"""The verdict on an option is what the sink does with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka_config.check_setting import is_secret
from eos_sink.kafka_config.java_settings import SETTINGS, Setting
from eos_sink.options import OPTIONS, Kind, kind_of, parse_options
from eos_sink_lab.migrate.assess import HIDDEN, assess_query, find_lacking
from eos_sink_lab.migrate.queries import Finding, Given, Place, Query, Verdict, Way

ENOUGH = {"kafka.bootstrap.servers": "127.0.0.1:1", "eos.id": "q"}
OWN = [option.name for option in OPTIONS if option.name != "kafka.*"]
# Files that are not there, and what is read together with others.
FILES = (".location", ".pem", ".key", ".chain", ".certificates")
VALUES = [
    "x",
    "1",
    "",
    "0",
    "-1",
    "7000",
    "1e9",
    "true",
    "false",
    "all",
    "https",
    "none",
    "JKS",
    "gzip",
    "SSL",
]


def query(options: dict[str, str | None], way: Way = Way.STREAM, **calls: str) -> Query:
    def given(name: str, value: str | None) -> Given:
        unread = "" if value is not None else "f(...) is known only when the program runs"
        return Given(name, value, Place("job.py", 1), unread)

    return Query(
        way,
        Place("job.py", 1),
        tuple(given(name, value) for name, value in options.items()),
        tuple(given(name.replace("__", "."), value) for name, value in calls.items()),
    )


def verdicts(found: list[Finding]) -> dict[str, Verdict]:
    return {finding.name: finding.verdict for finding in found}


def of(name: str, value: str | None, **more: str) -> Finding:
    options = {key: text for key, text in ENOUGH.items() if key != name}
    found = assess_query(query({**options, **more, name: value}))
    return next(finding for finding in found if finding.name == name)


@contextlib.contextmanager
def started(options: dict[str, str]) -> Iterator[None]:
    """As far as a query's start goes without a broker: real clients are made of the options."""
    kafka = ConfluentKafka(parse_options(options).cluster)
    producer = kafka.producer("id", 10_000)
    try:
        yield
    finally:
        producer.close()


def disagreements(name: str, values: list[str]) -> list[tuple[str, list[Finding]]]:
    """Values for which what is said and what the clients do differ."""
    found: list[tuple[str, list[Finding]]] = []
    for value in values:
        options = {**ENOUGH, name: value}
        said = assess_query(query(dict(options)))
        try:
            with started(options):
                taken = True
        except ConfigurationError:
            taken = False
        if all(finding.verdict.fine for finding in said) != taken:
            found.append((value, said))
    return found


_BEARER = "org.apache.kafka.common.security.oauthbearer"
ACCEPTED = {
    "sasl.login.callback.handler.class": [
        "",
        f"{_BEARER}.OAuthBearerLoginCallbackHandler",
        f"{_BEARER}.secured.OAuthBearerLoginCallbackHandler",
    ],
    "sasl.oauthbearer.jwt.retriever.class": [
        "",
        f"{_BEARER}.DefaultJwtRetriever",
        f"{_BEARER}.ClientCredentialsJwtRetriever",
    ],
    "ssl.enabled.protocols": ["", "TLSv1.2", "TLSv1.3, TLSv1.2"],
}
"""Values of the settings whose accepted values are no plain list."""


def values_of(row: Setting) -> list[str]:
    plain = "(" not in (row.accepts or "")
    accepted = (row.accepts or "").replace("\\", "").split("|") if plain else ACCEPTED[row.name]
    given = [*VALUES, *accepted, *row.instead]
    return [value for value in given if not value or not row.name.endswith(FILES)]


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_a_setting_is_fine_exactly_if_the_clients_take_it(row: Setting) -> None:
    assert disagreements(f"kafka.{row.name}", values_of(row)) == []


@pytest.mark.parametrize("name", OWN)
def test_an_option_is_fine_exactly_if_the_sink_takes_it(name: str) -> None:
    assert disagreements(name, VALUES) == []


def test_no_secret_is_ever_shown() -> None:
    names = [f"kafka.{row.name}" for row in SETTINGS if is_secret(row.name)]
    assert "kafka.sasl.jaas.config" in names
    assert "kafka.ssl.keystore.password" in names
    for name in [*names, "kafka.sasl.password", "pasword", "kafka.sasl.pasword"]:
        finding = of(name, "hunter2")
        assert "hunter2" not in repr(finding)
        assert finding.value == HIDDEN


def test_a_checkpoint_location_is_shown_without_what_may_be_a_secret() -> None:
    assert of("checkpointLocation", "s3a://key:secret@b/c").value == "s3a://b/c"


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("topic", "t", Verdict.SAME),
        ("checkpointLocation", "/c", Verdict.SAME),
        ("kafka.linger.ms", "5", Verdict.IGNORED),
        ("kafka.queue.buffering.max.ms", "5", Verdict.IGNORED),
        ("kafka.acks", "all", Verdict.SAME),
        ("kafka.max.request.size", "5000000", Verdict.TRANSLATED),
        ("kafka.transaction.timeout.ms", "60000", Verdict.TRANSLATED),
        ("includeHeaders", "true", Verdict.IGNORED),
        ("startingOffsets", "latest", Verdict.IGNORED),
        ("asyncProgressTrackingEnabled", "false", Verdict.IGNORED),
        ("asyncProgressTrackingCheckpointIntervalMs", "1000", Verdict.IGNORED),
        ("kafka.metric.reporters", "com.example.Reporter", Verdict.IGNORED),
        ("kafka.acks", "1", Verdict.REFUSED),
        ("kafka.transactional.id", "t", Verdict.REFUSED),
        ("kafka.interceptor.classes", "com.example.I", Verdict.REFUSED),
        ("asyncProgressTrackingEnabled", "true", Verdict.REFUSED),
        ("eos.log.replication.factor", "0", Verdict.REFUSED),
        ("topics", "t", Verdict.UNKNOWN),
        ("kafka.bufer.memory", "1", Verdict.UNKNOWN),
    ],
)
def test_the_verdict_on(name: str, value: str, verdict: Verdict) -> None:
    assert of(name, value).verdict is verdict


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("kafka.acks", "1", "Remove the option."),
        ("kafka.transactional.id", "1", "Remove the option"),
        ("topics", "t", "'topic'"),
        ("kafka.bufer.memory", "1", "'kafka.buffer.memory'"),
        ("kafka.key.serializer", "x", "Cast the column"),
    ],
)
def test_the_note_says_what_to_use_instead(name: str, value: str, part: str) -> None:
    note = of(name, value).note
    assert part in note
    assert "Nothing was written" not in note


def test_a_relative_checkpoint_is_refused_and_nothing_else_is_missing() -> None:
    found = assess_query(
        query({"kafka.bootstrap.servers": "127.0.0.1:1", "checkpointLocation": "c"})
    )
    assert verdicts(found) == {
        "kafka.bootstrap.servers": Verdict.SAME,
        "checkpointLocation": Verdict.REFUSED,
    }


def test_every_error_is_found_not_only_the_first() -> None:
    found = assess_query(query({"kafka.acks": "1", "topics": "t", "kafka.transactional.id": "x"}))
    assert verdicts(found) == {
        "kafka.acks": Verdict.REFUSED,
        "topics": Verdict.UNKNOWN,
        "kafka.transactional.id": Verdict.REFUSED,
        "kafka.bootstrap.servers": Verdict.MISSING,
        "eos.id": Verdict.MISSING,
    }


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        *((query({name: "/x"}), []) for name in ("eos.id", "checkpointLocation", "queryName")),
        (query({}, queryName="q"), []),
        (query({}, Way.PIPELINE), []),
        (query({}, Way.BATCH), []),
        (query({"topic": "t"}, Way.OPTIONS), ["eos.id"]),
    ],
)
def test_a_stream_needs_any_identity(asked: Query, lacking: list[str]) -> None:
    assert find_lacking(asked) == [*lacking, "kafka.bootstrap.servers"]


def test_a_batch_may_be_numbered_and_a_stream_may_not() -> None:
    numbered: dict[str, str | None] = {**ENOUGH, "txnAppId": "a", "txnVersion": "1"}
    assert {f.verdict for f in assess_query(query(numbered, Way.BATCH, mode="append"))} == {
        Verdict.SAME
    }
    assert {f.verdict for f in assess_query(query(numbered, Way.OPTIONS))} == {Verdict.SAME}
    assert verdicts(assess_query(query(numbered)))["txnAppId"] is Verdict.REFUSED
    alone = assess_query(query({**ENOUGH, "txnVersion": "1"}, Way.BATCH, mode="append"))
    assert verdicts(alone)["txnVersion"] is Verdict.REFUSED


def test_a_linger_is_used_only_without_the_native_client() -> None:
    assert of("kafka.linger.ms", "5", **{"eos.native": "false"}).verdict is Verdict.SAME
    assert of("kafka.linger.ms", "5", **{"eos.native": "true"}).verdict is Verdict.IGNORED
    default = Given("eos.native", "false", Place("spark-defaults.conf", 1))
    found = assess_query(query({**ENOUGH, "kafka.linger.ms": "5"}), [default])
    assert verdicts(found)["kafka.linger.ms"] is Verdict.SAME


def test_options_that_cannot_be_read_may_hold_what_is_missing() -> None:
    hidden = Given(None, None, Place("job.py", 2), "load() is known only when the program runs")
    found = assess_query(Query(Way.STREAM, Place("job.py", 1), (hidden,)))
    assert verdicts(found) == {"?": Verdict.UNREAD}
    assert hidden.unread in found[0].note


def test_a_value_that_cannot_be_read_is_fine_where_any_will_do() -> None:
    assert of("topic", None).verdict is Verdict.SAME
    assert "f(...)" in of("topic", None).note
    assert of("kafka.sasl.password", None).verdict.fine
    assert of("kafka.acks", None).verdict is Verdict.UNREAD
    assert of("kafka.linger.ms", None).verdict is Verdict.UNREAD
    assert of("checkpointLocation", None).verdict is Verdict.SAME, "eos.id is the identity"
    alone = assess_query(query({"kafka.bootstrap.servers": "b", "checkpointLocation": None}))
    assert verdicts(alone)["checkpointLocation"] is Verdict.UNREAD
    assert of("topics", None).verdict is Verdict.UNKNOWN


def test_two_names_for_one_setting_are_reported() -> None:
    two = {"kafka.metadata.broker.list": "b:1", "kafka.bootstrap.servers": None, "eos.id": "q"}
    assert verdicts(assess_query(query(two))) == {
        "kafka.metadata.broker.list": Verdict.REFUSED,
        "kafka.bootstrap.servers": Verdict.SAME,
        "eos.id": Verdict.SAME,
    }


def test_what_goes_with_a_value_that_cannot_be_read_is_not_blamed_for_it() -> None:
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required username=u password=p;"
    found = assess_query(
        query(
            {
                **ENOUGH,
                "kafka.security.protocol": "SASL_SSL",
                "kafka.sasl.jaas.config": jaas,
                "kafka.sasl.mechanism": None,
            }
        )
    )
    assert verdicts(found) == {
        "kafka.bootstrap.servers": Verdict.SAME,
        "eos.id": Verdict.SAME,
        "kafka.security.protocol": Verdict.SAME,
        "kafka.sasl.jaas.config": Verdict.TRANSLATED,
        "kafka.sasl.mechanism": Verdict.UNREAD,
    }


def test_what_a_login_lacks_is_missing() -> None:
    found = assess_query(
        query({**ENOUGH, "kafka.security.protocol": "SASL_SSL", "kafka.acks": "1"})
    )
    assert verdicts(found)["kafka.sasl.mechanism"] is Verdict.MISSING
    assert verdicts(found)["kafka.acks"] is Verdict.REFUSED


def test_of_two_with_one_name_the_later_holds() -> None:
    first = Given("kafka.acks", "1", Place("job.py", 1))
    second = Given("KAFKA.ACKS", "all", Place("job.py", 2))
    found = assess_query(Query(Way.OPTIONS, Place("job.py", 1), (first, second)))
    assert [finding.verdict for finding in found] == [Verdict.IGNORED, Verdict.SAME]
    assert "job.py:2" in found[0].note


@pytest.mark.parametrize(
    ("way", "calls", "expected"),
    [
        (Way.STREAM, {"format": "kafka"}, {"format": Verdict.CHANGE}),
        (Way.STREAM, {"format": "kafka-eos"}, {"format": Verdict.SAME}),
        (Way.STREAM, {"format": "console"}, {"format": Verdict.UNKNOWN}),
        (Way.STREAM, {"outputMode": "Complete"}, {"outputMode": Verdict.SAME}),
        (Way.STREAM, {"outputMode": "update"}, {"outputMode": Verdict.REFUSED}),
        (
            Way.STREAM,
            {"trigger__availableNow": "true"},
            {"trigger.availableNow": Verdict.SAME},
        ),
        (
            Way.STREAM,
            {"trigger__continuous": "1 second"},
            {"trigger.continuous": Verdict.REFUSED},
        ),
        (Way.STREAM, {"trigger__realTime": "1 s"}, {"trigger.realTime": Verdict.REFUSED}),
        (Way.STREAM, {"trigger__often": "1"}, {"trigger.often": Verdict.UNKNOWN}),
        (Way.BATCH, {"mode": "append"}, {"mode": Verdict.SAME}),
        (Way.BATCH, {"mode": "overwrite"}, {"mode": Verdict.REFUSED}),
        (Way.BATCH, {"mode": "errorifexists"}, {"mode": Verdict.REFUSED}),
        (Way.BATCH, {}, {"mode": Verdict.MISSING}),
    ],
)
def test_the_verdict_on_a_call(
    way: Way, calls: dict[str, str], expected: dict[str, Verdict]
) -> None:
    found = verdicts(assess_query(query(dict(ENOUGH), way, **calls)))
    assert {name: v for name, v in found.items() if name not in ENOUGH} == expected


def test_the_kind_of_each_option_of_the_table_is_known() -> None:
    assert {kind_of(name.upper()) for name in OWN} == {Kind.OWN}
    assert kind_of("kafka.anything") is Kind.KAFKA
    assert kind_of("anything") is Kind.UNKNOWN


def of_store(location: object, kind: str = "") -> dict[str, Finding]:
    options = {**ENOUGH, "kafka.security.protocol": "SSL"}
    options["kafka.ssl.truststore.location"] = str(location)
    if kind:
        options["kafka.ssl.truststore.type"] = kind
    return {finding.name: finding for finding in assess_query(query(dict(options)))}


def test_a_store_is_judged_by_what_the_file_is(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    finding = of_store(store)["kafka.ssl.truststore.location"]
    assert finding.verdict is Verdict.REFUSED
    assert f"keytool -importkeystore -srckeystore {store}" in finding.note
    store.write_text("-----BEGIN CERTIFICATE-----")
    assert of_store(store)["kafka.ssl.truststore.location"].verdict is Verdict.TRANSLATED


def test_a_store_that_no_connection_uses_is_not_looked_at() -> None:
    for protocol in ({}, {"kafka.security.protocol": "SASL_PLAINTEXT"}):
        finding = of("kafka.ssl.truststore.location", "/not/here.jks", **protocol)
        assert finding.verdict is Verdict.TRANSLATED


def test_a_store_that_is_not_here_is_left_to_the_user() -> None:
    finding = of_store("/not/here.jks", "JKS")["kafka.ssl.truststore.location"]
    assert finding.verdict is Verdict.UNREAD
    assert "keytool -importkeystore" in finding.note
    there = of_store("/not/here.pem", "PEM")
    assert there["kafka.ssl.truststore.location"].verdict is Verdict.TRANSLATED
