"""Options are parsed once; what is wrong with one is said with its name and a way out."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.cluster_config import Translation
from eos_sink.options import OPTIONS, parse_batch_options, parse_common_options, parse_options
from eos_sink.sink_options import SinkOptions, Version

ENOUGH = {"kafka.bootstrap.servers": "b:9092", "eos.id": "q"}


def parsed(**more: str) -> SinkOptions:
    return parse_options({**ENOUGH, **{k.replace("__", "."): v for k, v in more.items()}})


def refused(options: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as error:
        parse_options(options)
    assert "Nothing was written" in str(error.value)
    return str(error.value)


def test_two_options_are_enough_and_the_rest_is_as_the_table_says() -> None:
    options = parsed()
    defaults = {option.name: option.default for option in OPTIONS}
    assert options.names.prefix == defaults["eos.transactional.id.prefix"]
    assert options.log_topic == defaults["eos.log.topic"]
    assert str(options.cluster.log_replication) == defaults["eos.log.replication.factor"]
    assert str(options.transaction_timeout_ms) == defaults["eos.transaction.timeout.ms"]
    assert options.step_timeout * 1000 == float(defaults["eos.step.timeout.ms"] or "nan")
    assert str(options.cluster.native).lower() == defaults["eos.native"]
    assert str(options.metrics_log).lower() == defaults["eos.metrics.log"]
    assert options.topic is None
    assert options.cluster.client.settings == {"bootstrap.servers": "b:9092"}


def test_several_wrong_options_are_told_at_once() -> None:
    wrong = {"eos.nativ": "true", "eos.metrics.log": "1", "eos.step.timeout.ms": "soon"}
    with pytest.raises(ConfigurationError) as error:
        parse_options({**ENOUGH, **wrong, "kafka.acks": "1"})
    assert len(error.value.errors) == 4
    for told in ("'eos.nativ'", "'eos.native'?", "eos.metrics.log", "'soon'", "kafka.acks"):
        assert told in str(error.value)
    assert str(error.value).count("Nothing was written") == 1


@pytest.mark.parametrize("value", ["1", "no", ""])
def test_a_flag_is_true_or_false(value: str) -> None:
    assert "eos.native" in refused({**ENOUGH, "eos.native": value})
    assert not parse_options({**ENOUGH, "eos.native": "False"}).cluster.native
    assert parse_options({**ENOUGH, "eos.metrics.log": "True"}).metrics_log


OF_WRITES = ["txnAppId", "txnVersion", "eos.write.id"]
ONE_BY_ONE = [o.name for o in OPTIONS if o.name not in ("kafka.*", *OF_WRITES)]


@given(st.sampled_from(ONE_BY_ONE), st.randoms())
def test_the_case_of_a_name_does_not_matter(name: str, chance: object) -> None:
    values = {"eos.log.topic": "log", "topic": "t"}
    values |= {"eos.native": "false", "eos.metrics.log": "true"}
    values |= {"eos.oauth.token.provider": "module:function"}
    value = values.get(name, "5000")
    mixed = "".join(chance.choice([c.upper(), c]) for c in name)  # type: ignore[attr-defined]
    given = {**ENOUGH, "checkpointLocation": "/c"}
    rest = {key: v for key, v in given.items() if key != name}
    assert parse_options({**rest, mixed: value}) == parse_options({**rest, name: value})


def test_options_travel_between_processes() -> None:
    options = parsed(topic="t", kafka__linger__ms="5")
    assert pickle.loads(pickle.dumps(options)) == options


def test_kafka_settings_reach_the_clients_without_their_prefix() -> None:
    options = parsed(kafka__linger__ms="5", kafka__security__protocol="SSL")
    assert options.cluster.client.settings == {
        "bootstrap.servers": "b:9092",
        "linger.ms": "5",
        "security.protocol": "ssl",
    }


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("eos.idd", "eos.id"),
        ("topics", "topic"),
        ("eos.transaction.timeout", "eos.transaction.timeout.ms"),
        ("eos.transactional.prefix", "eos.transactional.id.prefix"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("checkpointlocatoin", "checkpointlocation"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_known(name: str, nearest: str) -> None:
    message = refused({**ENOUGH, name: "x"})
    assert repr(name) in message
    assert repr(nearest) in message


def test_an_option_like_no_other_is_refused_with_all_that_are_known() -> None:
    message = refused({**ENOUGH, "zzzzzz": "x"})
    assert all(option.name in message for option in OPTIONS)


@pytest.mark.parametrize(
    "name",
    ["checkpointLocation", "queryName", "path", "startingOffsets", "subscribe", "includeHeaders"],
)
def test_sparks_own_options_pass(name: str) -> None:
    parse_options({**ENOUGH, name: "/x"})


@pytest.mark.parametrize("servers", [None, "", "  "])
def test_no_bootstrap_servers_is_an_error(servers: str | None) -> None:
    given = {"eos.id": "q"} | ({} if servers is None else {"kafka.bootstrap.servers": servers})
    assert "kafka.bootstrap.servers" in refused(given)


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_id_is_no_id(blank: str) -> None:
    assert "eos.id" in refused({"kafka.bootstrap.servers": "b:1", "eos.id": blank})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eos.transaction.timeout.ms", "soon"),
        ("eos.transaction.timeout.ms", "999"),
        ("eos.transaction.timeout.ms", "2147483648"),
        ("eos.step.timeout.ms", "9223372036854775808"),
        ("topic", ".."),
        ("eos.transaction.timeout.ms", ""),
        ("eos.transaction.timeout.ms", "1.5"),
        ("kafka.transaction.timeout.ms", "999"),
        ("eos.step.timeout.ms", "0"),
        ("eos.step.timeout.ms", "-1"),
        ("eos.log.replication.factor", "0"),
        ("eos.log.topic", " "),
        ("eos.log.topic", "my log"),
        ("eos.transactional.id.prefix", ""),
        ("eos.transactional.id.prefix", "für-"),
        ("eos.transactional.id.prefix", "a\x1b[31m"),
        ("kafka.metadata.recovery.rebootstrap.trigger.ms", "0"),
        ("kafka.metadata.recovery.rebootstrap.trigger.ms", "99"),
        ("kafka.acks", "1"),
        ("kafka.acks", "0"),
        ("kafka.enable.idempotence", "false"),
        ("kafka.transactional.id", "mine"),
        ("kafka.key.serializer", "x"),
        ("kafka.value.serializer", "x"),
    ],
)
def test_an_impossible_value_is_refused_by_name(name: str, value: str) -> None:
    message = refused({**ENOUGH, name: value})
    assert name.lower() in message


ASYNCHRONOUS = {
    **ENOUGH,
    "checkpointLocation": "/c//d",
    "asyncProgressTrackingEnabled": "True",
    "asyncProgressTrackingCheckpointIntervalMs": "0",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}


def test_with_asynchronous_progress_the_offsets_of_each_batch_are_waited_for() -> None:
    assert parse_options(ASYNCHRONOUS).late_checkpoint == "/c/d"
    assert parse_options({**ASYNCHRONOUS, "asyncProgressTrackingEnabled": "false"}) == (
        parse_options({**ENOUGH, "checkpointLocation": "/c//d"})
    )


@pytest.mark.parametrize("interval", [None, "1000", "", "-1"])
def test_asynchronous_progress_without_the_offsets_of_each_batch_is_refused(
    interval: str | None,
) -> None:
    given = {**ASYNCHRONOUS, "asyncProgressTrackingCheckpointIntervalMs": interval}
    message = refused({name: value for name, value in given.items() if value is not None})
    assert "Set asyncProgressTrackingCheckpointIntervalMs to 0" in message


def test_asynchronous_progress_needs_the_checkpoint() -> None:
    given = {name: value for name, value in ASYNCHRONOUS.items() if name != "checkpointLocation"}
    assert "needs the option checkpointLocation" in refused(given)


def test_a_group_of_ones_own_changes_nothing() -> None:
    """What a consumer of the same options would join; the sink sends its own group's offset."""
    named = parse_options({**ENOUGH, "kafka.group.id": "mine"})
    assert named.names.group == parse_options(ENOUGH).names.group


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.acks", "all"),
        ("kafka.acks", "-1"),
        ("kafka.enable.idempotence", "TRUE"),
        ("asyncProgressTrackingEnabled", "false"),
    ],
)
def test_what_is_so_anyway_may_be_said(name: str, value: str) -> None:
    assert parse_options({**ENOUGH, name: value}).cluster.client == Translation(
        {"bootstrap.servers": "b:9092"}
    )


def test_the_java_name_of_the_time_out_counts_and_must_not_differ() -> None:
    java = "kafka.transaction.timeout.ms"
    assert parse_options({**ENOUGH, java: "5000"}).transaction_timeout_ms == 5000
    both = {java: "5000", "eos.transaction.timeout.ms": "5000"}
    assert parse_options({**ENOUGH, **both}).transaction_timeout_ms == 5000
    assert "differ" in refused({**ENOUGH, **both, java: "6000"})


# --- batch writes

BATCH = {"kafka.bootstrap.servers": "b:9092", "topic": "t"}


def test_a_batch_write_needs_neither_an_id_nor_a_checkpoint() -> None:
    options = parse_batch_options(BATCH)
    assert options.version is None
    assert options.sink.names.query.startswith("t-")
    assert options.sink.origin.batch
    assert str(options.sink.origin) == "batch write, topic 't'"


def test_the_version_is_no_part_of_what_a_process_keeps_its_clients_for() -> None:
    numbered = [parse_batch_options({**BATCH, "txnAppId": "a", "txnVersion": n}) for n in "78"]
    assert [each.version for each in numbered] == [Version("a", 7), Version("a", 8)]
    assert numbered[0].sink == numbered[1].sink


@pytest.mark.parametrize("number", ["0", "9223372036854775807", " 12 "])
def test_a_version_is_a_whole_number_of_64_bits(number: str) -> None:
    options = parse_batch_options({**BATCH, "txnAppId": "a", "txnVersion": number})
    assert options.version == Version("a", int(number))


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "9223372036854775808", "1_000"])
def test_any_other_version_is_refused(number: str) -> None:
    with pytest.raises(ConfigurationError, match="txnVersion"):
        parse_batch_options({**BATCH, "txnAppId": "a", "txnVersion": number})


@pytest.mark.parametrize(
    ("given", "missing"), [("txnAppId", "txnVersion"), ("txnVersion", "txnAppId")]
)
def test_an_application_and_its_version_are_given_together(given: str, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        parse_batch_options({**BATCH, given: "1"})


def test_a_write_id_is_a_whole_number_and_no_part_of_the_identity() -> None:
    options = parse_batch_options({**BATCH, "eos.write.id": "12"})
    assert options.version == Version("", 12)
    assert options.sink == parse_batch_options(BATCH).sink
    for wrong in ({"eos.write.id": "x"}, {"eos.write.id": "1", "txnAppId": "a", "txnVersion": "1"}):
        with pytest.raises(ConfigurationError, match=r"eos\.write\.id"):
            parse_batch_options({**BATCH, **wrong})


@pytest.mark.parametrize("name", OF_WRITES)
def test_a_stream_takes_no_version(name: str) -> None:
    assert "df.write" in refused({**ENOUGH, name: "1"})


def test_what_is_wrong_for_streams_and_batches_is_refused_before_it_is_known_which_it_is() -> None:
    parse_common_options(BATCH)
    for wrong in ({"kafka.acks": "1"}, {"eos.idd": "x"}, {"eos.step.timeout.ms": "soon"}):
        with pytest.raises(ConfigurationError):
            parse_common_options({**BATCH, **wrong})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("a b", {}),
        ("..", {}),
        ("__consumer_offsets", {}),
        ("readings", {"topic": "readings"}),
        ("__eos_sink_log", {}),
        ("log", {"eos.log.topic": "log"}),
    ],
)
def test_a_dead_letter_topic_that_cannot_be_one_is_refused(
    name: str, given: dict[str, str]
) -> None:
    text = refused({**ENOUGH, **given, "eos.dead.letter.topic": name})
    assert f"eos.dead.letter.topic is {name!r}" in text


@pytest.mark.parametrize("option", ["topic", "eos.destinations"])
@pytest.mark.parametrize("given", [{}, {"eos.log.topic": "log"}, {"eos.dead.letter.topic": "dead"}])
def test_the_decision_log_takes_no_rows(option: str, given: dict[str, str]) -> None:
    log = given.get("eos.log.topic", "__eos_sink_log")
    with pytest.raises(ConfigurationError) as error:
        parse_options({**ENOUGH, **given, option: log})
    assert error.value.data == {"topic": log}
    assert f"Option {option} names" in error.value.message


def test_there_is_no_dead_letter_topic_unless_one_is_named() -> None:
    assert parsed(eos__dead__letter__topic=" ").dead_letter_topic is None
    assert parsed(eos__dead__letter__topic="dead").dead_letter_topic == "dead"
