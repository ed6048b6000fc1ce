"""The secured cluster itself: who gets in, and what is permitted."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from eos_sink.errors import ClusterError, EosSinkError
from eos_sink.kafka.admin.confluent_admin import ConfluentAdmin
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.connection.settings import librdkafka_settings
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import TransactionalProducer
from eos_sink.kafka.shared_clients import check_login
from eos_sink.kafka_config.acls import Acl, Resource
from eos_sink.kafka_config.translate import translate
from eos_sink.options import parse_options
from eos_sink.protocol.values import ProduceFailed
from eos_sink_lab.testing import KafkaCluster
from integration.secured_query import documented
from integration.topics import unique

PATIENCE_S = 30
SOON_S = 6
# Until a client's certificate expires: all clients have to be connected by then.
CONNECTED_S = 45
LONG_AGO = datetime(2001, 1, 1, tzinfo=timezone.utc)


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
        check_login({"bootstrap.servers": servers}, "any", Deadline(10))
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
        path.write_text("half a certificate")
        with pytest.raises(EosSinkError) as raised:
            kafka.control()
    # Of a batch whose decision may be written.
    assert "Nothing was written" not in str(raised.value)
    assert raised.value.remedy.endswith("Then start the query again.")


@pytest.mark.long
@pytest.mark.parametrize("whose", ["broker", "client"])
def test_kept_clients_name_the_certificate_that_expired_meanwhile(
    secured: KafkaCluster, whose: str
) -> None:
    """Not that brokers are silent, which librdkafka and kafka-python report."""
    access, user, topic = secured.access, unique("user"), unique("topic")
    secured.create_topic(topic)
    login = {**access.options(user, "TLS"), "eos.log.topic": unique("log")}
    # A broker that starts slowly refuses connections first: without this, librdkafka may wait ten
    # seconds then, longer than each of the calls below.
    login["kafka.reconnect.backoff.max.ms"] = "1000"
    options = parse_options({**login, "topic": topic, "eos.id": user})
    access.allow(user, *documented(topic, options.log_topic))
    names, broker = options.names, login["kafka.bootstrap.servers"]
    expires = datetime.now(timezone.utc) + timedelta(seconds=CONNECTED_S)
    if whose == "client":
        access.authority.renew(user, expires)
    with contextlib.closing(ConfluentAdmin(options.cluster, PATIENCE_S)) as kafka:
        producers = [kafka.producer(names.task(0, n), 60_000) for n in range(4)]
        for producer in producers[:3]:
            producer.init(Deadline(PATIENCE_S))
            producer.begin()
            producer.produce(topic, b"row")
            producer.flush(Deadline(PATIENCE_S))
        control = kafka.control()
        control.describe([names.task(0, 0)], Deadline(PATIENCE_S))
        if whose == "client":
            time.sleep(max(0, (expires - datetime.now(timezone.utc)).total_seconds()))
        else:
            access.authority.renew("broker", LONG_AGO)
        try:
            secured.nodes[0].restart()
            member = kafka.member(names.group, names.driver, 60_000)
            producers[2].produce(topic, b"late")
            said = [
                refusal(lambda: producers[0].commit(Deadline(SOON_S))),
                refusal(lambda: producers[1].abort(Deadline(SOON_S))),
                refusal(lambda: producers[3].init(Deadline(SOON_S))),
                refusal(lambda: member.join(Deadline(SOON_S))),
                refusal(lambda: control.describe([names.task(0, 0)], Deadline(SOON_S))),
                refusal(lambda: control.list_transactions(names.group, Deadline(SOON_S))),
                refusal(lambda: kafka.check_topic(topic, Deadline(SOON_S))),
                refusal(lambda: kafka.read_log({}, Deadline(SOON_S))),
                str(kafka.list_offsets([(topic, 0)], Deadline(SOON_S))[topic, 0]),
            ]
            with pytest.raises(ProduceFailed) as late:
                deliver(producers[2])
        finally:
            access.authority.renew("broker")
            secured.nodes[0].restart()
    for text in (*said, str(late.value)):
        assert "TLS handshake failed" in text
        assert "certificate" in text
        assert broker in text
    assert all("docs/connect.md#expired-certificates" in text for text in said)


def deliver(producer: TransactionalProducer) -> None:
    producer.flush(Deadline(SOON_S))
    # On a busy machine a record is given up before.
    producer.check()


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(EosSinkError) as refused:
        act()
    return str(refused.value)
