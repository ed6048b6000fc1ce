"""Settings of the session as defaults of options."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import AnalysisException

import eos_sink
from eos_sink.errors import ConfigurationError
from eos_sink.spark.data_source import KafkaEosDataSource
from eos_sink.spark.session_defaults import Defaults

SERVERS = "spark.datasource.kafka-eos.kafka.bootstrap.servers"
TOPIC = "spark.datasource.kafka-eos.topic"
PASSWORD = "spark.datasource.kafka-eos.kafka.sasl.password"
SECRET = "a-secret"


class Session:
    """As much of a session as `register` asks for; Spark's workers get the class by cloudpickle."""

    version = "4.0.5"

    def __init__(self, error: AnalysisException | None = None, **settings: str) -> None:
        self._error = error
        self.conf = SimpleNamespace(getAll={"spark.app.name": "x", **settings})
        self.dataSource = SimpleNamespace(register=self._register)
        self.source: Any = None

    def _register(self, source: type[KafkaEosDataSource]) -> None:
        if self._error:
            raise self._error
        self.source = pickle.loads(dumps(source))  # type: ignore[no-untyped-call]


def registered(settings: dict[str, str]) -> Any:
    session = Session(None, **settings)
    eos_sink.register(session)  # type: ignore[arg-type]
    return session.source


def options_of(source: KafkaEosDataSource) -> dict[str, str]:
    return source._all_options()


def test_a_setting_is_the_default_of_an_option_and_options_override_it() -> None:
    source = registered({SERVERS: "broker:9092", TOPIC: "a", "spark.datasource.other.topic": "z"})
    assert options_of(source({})) == {"kafka.bootstrap.servers": "broker:9092", "topic": "a"}
    given = options_of(source({"Topic": "b"}))
    assert given == {"kafka.bootstrap.servers": "broker:9092", "topic": "b"}
    assert source.name() == "kafka-eos"


def test_one_session_s_defaults_are_no_other_s() -> None:
    registered({SERVERS: "broker:9092"})
    assert options_of(registered({})({"kafka.bootstrap.servers": "other:1"})) == {
        "kafka.bootstrap.servers": "other:1"
    }
    with pytest.raises(ConfigurationError, match=r"eos_sink\.register"):
        KafkaEosDataSource({"topic": "a"})


class Refusal(AnalysisException):
    """As Spark's JVM raises it."""

    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self.condition = condition

    def getCondition(self) -> str:  # noqa: N802 - the name is of Spark
        return self.condition


def test_a_format_that_spark_4_0_has_found_by_its_name_is_known_already() -> None:
    known = Refusal("DATA_SOURCE_ALREADY_EXISTS")
    eos_sink.register(Session(known))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="as options of each query"):
        eos_sink.register(Session(known, **{TOPIC: "a"}))  # type: ignore[arg-type]


def test_another_refusal_of_spark_is_not_hidden() -> None:
    with pytest.raises(AnalysisException):
        eos_sink.register(Session(Refusal("DATA_SOURCE_NOT_FOUND")))  # type: ignore[arg-type]


def test_spark_3_5_is_told_to_write_with_foreachbatch() -> None:
    with pytest.raises(ConfigurationError, match=r"foreachBatch\(eos_sink\.foreach_batch"):
        eos_sink.register(SimpleNamespace(version="3.5.9"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("topics", r"spark\.datasource\.kafka-eos\.topics: Unknown option .* Did you mean 'topic'"),
        ("kafka.acks", r"kafka\.acks"),
        ("kafka.transactional.id", r"kafka\.transactional\.id"),
    ],
)
def test_a_wrong_default_is_an_error_as_an_option_is(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        registered({SERVERS: "broker:9092", f"spark.datasource.kafka-eos.{name}": "1"})({})


def test_a_name_in_capitals_is_the_same_name() -> None:
    source = registered({SERVERS: "broker:9092", TOPIC: "a", TOPIC.replace("topic", "Topic"): "a"})
    assert options_of(source({}))["topic"] == "a"
    with pytest.raises(ConfigurationError, match="twice"):
        registered({TOPIC: "a", TOPIC.replace("topic", "TOPIC"): "b"})


def test_a_secret_is_in_no_text() -> None:
    source = registered({SERVERS: "broker:9092", PASSWORD: SECRET})
    instance = source({})
    assert options_of(instance)["kafka.sasl.password"] == SECRET
    for text in (repr(source), repr(instance), repr(source.defaults), repr(vars(source))):
        assert SECRET not in text
    with pytest.raises(ConfigurationError) as refused:
        Defaults().check_applied([], {PASSWORD: SECRET})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("applied", "given", "said"),
    [
        ({}, [], "sets spark.datasource.kafka-eos.topic, which"),
        ({TOPIC: "before"}, [], "sets spark.datasource.kafka-eos.topic, which"),
        ({TOPIC: "a"}, [], None),
        ({}, ["TOPIC"], None),
    ],
)
def test_a_task_refuses_settings_that_were_not_applied(
    applied: dict[str, str], given: list[str], said: str | None
) -> None:
    defaults = Defaults.of_settings(applied)
    settings = {TOPIC: "a", "spark.speculation": "false"}
    if said is None:
        defaults.check_applied(given, settings)
    else:
        with pytest.raises(ConfigurationError, match=said):
            defaults.check_applied(given, settings)


def test_starting_offsets_go_by_the_defaults_of_the_active_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[Mapping[str, str], str]] = []
    settings = {SERVERS: "broker:1", "spark.cores.max": "2"}
    monkeypatch.setattr("eos_sink.spark.classic_session.active_settings", lambda: settings)
    monkeypatch.setattr(
        "eos_sink.ops.starting_offsets.find_starting_offsets",
        lambda *asked: given.append(asked),
    )
    eos_sink.starting_offsets({"eos.id": "q"}, "latest")
    assert given == [({"kafka.bootstrap.servers": "broker:1", "eos.id": "q"}, "latest")]
