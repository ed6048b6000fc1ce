"""Topics of a Kafka source, by the options as Spark reads them."""

from __future__ import annotations

import pickle

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.source_topics import parse_source_topics


@pytest.mark.parametrize(
    ("options", "selected", "others"),
    [
        ({"subscribe": "a"}, ["a"], ["b", "aa", "A"]),
        ({"subscribe": " a , b.c,,"}, ["a", "b.c"], ["", "c", "bxc"]),
        ({"assign": '{"a": [0, 1], "b": []}'}, ["a", "b"], ["c"]),
        ({"subscribepattern": " a.+ "}, ["ab", "xab"], ["a", "b"]),
        ({"subscribepattern": "_"}, ["a_b", "__eos_sink_log"], ["__consumer_offsets"]),
        ({"subscribe": "__consumer_offsets"}, ["__consumer_offsets"], []),
        ({"subscribepattern": "^a$"}, ["a"], ["ab", "ba"]),
        ({"subscribepattern": "(?i)ORDERS-[0-9]"}, ["orders-1"], ["orders-x"]),
        ({"subscribepattern": r"[\[a-c&]\."}, ["b.", "[.", "&."], ["d."]),
    ],
)
def test_topics_are_selected_as_spark_does(
    options: dict[str, str], selected: list[str], others: list[str]
) -> None:
    topics = pickle.loads(pickle.dumps(parse_source_topics(options)))
    assert all(map(topics.selects, selected))
    assert not any(map(topics.selects, others))


def test_of_an_assigned_topic_some_partitions_are_read() -> None:
    topics = parse_source_topics({"assign": '{"a": [0, 2]}'})
    assert topics is not None
    assert [number for number in range(4) if topics.reads(("a", number))] == [0, 2]
    every = parse_source_topics({"subscribe": "a"})
    assert every is not None
    assert every.reads(("a", 7))


def test_without_options_of_a_source_there_are_no_topics() -> None:
    assert parse_source_topics({"topic": "out"}) is None


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": " , "},
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"assign": "a"},
        {"assign": "{}"},
        {"assign": '{"a": [0}'},
        {"assign": '{"a": 0}'},
        {"assign": '{"a": ["0"]}'},
        {"subscribepattern": " "},
        {"subscribepattern": "a("},
        # Java's own, which Python refuses or reads as something else.
        {"subscribepattern": r"\p{Alpha}+"},
        {"subscribepattern": r"\Qa.b\E"},
        {"subscribepattern": "(?<name>a)"},
        {"subscribepattern": "[a-z&&[^b]]"},
        {"subscribepattern": "[a[bc]]"},
        {"subscribepattern": "a(?i)b"},
        {"subscribepattern": "(?u)a"},
    ],
)
def test_what_is_malformed_or_only_javas_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        parse_source_topics(options)
