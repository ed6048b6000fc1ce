"""Whose requests the brokers have logged."""

from __future__ import annotations

import json

import pytest

from bench.requests import _request


def line(api: str, client: str, software: str) -> str:
    document = {
        "requestHeader": {"clientId": client, "requestApiKeyName": api},
        "clientInformation": {"softwareName": software, "softwareVersion": "1"},
    }
    return f"12:00:00.000 [thread] DEBUG x - Completed request:{json.dumps(document)}"


@pytest.mark.parametrize(
    ("api", "client", "software", "found"),
    [
        ("PRODUCE", "rdkafka", "confluent-kafka-python", ("librdkafka", "PRODUCE")),
        ("API_VERSIONS", "rdkafka", "unknown", ("librdkafka", "API_VERSIONS")),
        ("END_TXN", "kafka-python-3.0.12", "kafka-python", ("kafka-python", "END_TXN")),
        ("END_TXN", "kafka-python-3.0.12", "eos-sink", ("kafka-python", "END_TXN")),
        ("WRITE_TXN_MARKERS", "broker-1", "unknown", ("broker", "WRITE_TXN_MARKERS")),
        ("FETCH", "broker-1-fetcher-0", "apache-kafka-java", None),
    ],
)
def test_a_request_is_identified_by_its_client(
    api: str, client: str, software: str, found: tuple[str, str] | None
) -> None:
    assert _request(line(api, client, software)) == found


def test_other_lines_are_passed_over() -> None:
    assert _request("12:00:00.000 [main] WARN kafka.log - something else") is None
