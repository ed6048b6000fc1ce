"""The secured cluster itself: who gets in, and what is permitted."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.connection.settings import librdkafka_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.shared_clients import check_login
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.translate import translate
from eos_sink.options import parse_options
from eos_sink_lab.testing import KafkaCluster

PATIENCE_S = 30


def written(secured: KafkaCluster, topic: str, options: dict[str, str]) -> KafkaError | None:
    """The error of a record that is written with this login."""
    settings = librdkafka_settings(
        translate({n.removeprefix("kafka."): v for n, v in options.items()})
    )
    producer = Producer({**settings, "log_level": 0})
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return errors[0]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "TLS"])
def test_a_user_may_do_what_was_allowed_until_it_is_not(
    secured: KafkaCluster, mechanism: str
) -> None:
    topic, write = f"as-{mechanism}", Acl("Write", Resource.TOPIC, f"as-{mechanism}")
    secured.create_topic(topic)
    login = secured.access.options("ann", mechanism)
    secured.access.allow("ann", write)
    assert written(secured, topic, login) is None
    secured.access.revoke("ann", write)
    error = written(secured, topic, login)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_client_without_tls_learns_that_the_port_may_expect_it(secured: KafkaCluster) -> None:
    servers = secured.access.options("ann", "TLS")["kafka.bootstrap.servers"]
    with pytest.raises(ClusterError, match="SASL_SSL"):
        check_login({"bootstrap.servers": servers}, "any", Deadline(2))
    with pytest.raises(ClusterError, match="Connection refused") as refused:
        check_login({"bootstrap.servers": "127.0.0.1:1"}, "any", Deadline(2))
    assert "SASL_SSL" not in str(refused.value)


def test_kept_clients_use_a_certificate_that_was_renewed_at_its_path(
    secured: KafkaCluster, tmp_path: Path
) -> None:
    """As another user, so that the brokers tell which one is used."""
    path = tmp_path / "client.pem"
    options = {**secured.access.options("renewed-from", "TLS"), "eos.id": "renewed"}
    options["kafka.ssl.keystore.location"] = str(path)
    shutil.copy(secured.access.authority.identity("renewed-from").both, path)
    needs = Acl("Describe", Resource.TRANSACTIONAL_ID, "an-id")
    secured.access.allow("renewed-to", needs)
    with contextlib.closing(ConfluentKafka(parse_options(options).cluster)) as kafka:
        with pytest.raises(ClusterError):
            kafka.control().describe(["an-id"], Deadline(PATIENCE_S))
        shutil.copy(secured.access.authority.identity("renewed-to").both, path)
        assert kafka.control().describe(["an-id"], Deadline(PATIENCE_S))
