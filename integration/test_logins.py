"""One set of options brings both Kafka clients into a secured cluster, by every way to log in."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.connection.oauth import make_unsigned_token
from eos_sink.kafka.deadline import Deadline
from eos_sink.options import parse_options
from eos_sink.protocol.values import TransactionStatus
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.topic_scan import Scan, Source, Span
from integration import short_tokens
from integration.secured_query import documented
from tests.kafka.token_server import TokenServer, serving
from tests.key_stores import STORE_PASSWORD, encrypt_key, pkcs12_keystore, pkcs12_truststore

TOPIC = "logins"
PATIENCE_S = 30.0
TRANSACTION_MS = 60_000


@pytest.fixture(scope="module")
def entered(secured: KafkaCluster) -> KafkaCluster:
    secured.create_topic(TOPIC)
    secured.access.allow("ann", *documented(TOPIC, "__eos_sink_log"))
    return secured


def writes_through_both_clients(kafka: KafkaCluster, login: dict[str, str], name: str) -> None:
    """Each client that the sink makes does its part, and the record is there."""
    options = parse_options({**login, "topic": TOPIC, "eos.id": name})
    clients = ConfluentKafka(options.cluster)
    deadline = Deadline(PATIENCE_S)
    transactional_id = f"{options.names.group}-0-0"
    try:
        clients.check_topic(TOPIC, deadline)
        clients.log_reader(options.names, deadline)
        control = clients.control()
        is_open = TransactionStatus.ONGOING
        assert control.list_transactions(f"{options.names.group}-", deadline, is_open) == []
        member = clients.member(options.names.group, f"{options.names.group}-0", TRANSACTION_MS)
        member.join(deadline)
        member.close()
        producer = clients.producer(transactional_id, TRANSACTION_MS)
        producer.init(deadline)
        producer.begin()
        offsets: list[int] = []
        producer.produce(
            TOPIC, name.encode(), partition=0, on_offset=lambda _, offset: offsets.append(offset)
        )
        producer.flush(deadline)
        open_now = control.list_transactions(f"{options.names.group}-", deadline, is_open)
        producer.commit(deadline)
        producer.close()
        assert [each.transaction.transactional_id for each in open_now] == [transactional_id]
        assert value_at(kafka, offsets[0]) == name.encode()
    finally:
        clients.close()


def value_at(kafka: KafkaCluster, offset: int) -> bytes | None:
    reader = Scan(Source(kafka.bootstrap_servers, TOPIC), committed=True)
    try:
        ((row,),) = filter(None, reader.read([Span(0, offset, offset + 1)]))
        return row.value()
    finally:
        reader.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "TLS", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_both_clients_log_in(entered: KafkaCluster, mechanism: str) -> None:
    writes_through_both_clients(entered, entered.access.options("ann", mechanism), mechanism)


def test_both_clients_log_in_with_a_token_from_a_server(
    entered: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Over https, by an authority that only the option names. The broker asks for no signature."""
    authority = entered.access.authority
    claims = {"sasl.oauthbearer.config": "principal=ann scope=kafka lifeSeconds=100"}
    with serving(TokenServer(authority.identity("login"))) as server:
        server.token = lambda _: make_unsigned_token(claims, time.time())[0]
        login = {
            **entered.access.options("ann", "OAUTHBEARER"),
            **{f"kafka.{name}": value for name, value in server.settings().items()},
            "kafka.sasl.oauthbearer.scope": "kafka",
            "kafka.https.ca.location": str(authority.ca),
        }
        del login["kafka.sasl.jaas.config"]
        caplog.set_level(logging.DEBUG)
        writes_through_both_clients(entered, login, "token")
        assert {form for _, form in server.asked} == {"grant_type=client_credentials&scope=kafka"}
    assert "canary" not in caplog.text
    assert make_unsigned_token(claims, 0)[0].split(".")[0] not in caplog.text


def test_both_clients_log_in_with_a_token_of_a_function(
    entered: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    login = entered.access.options("ann", "OAUTHBEARER")
    del login["kafka.sasl.jaas.config"]
    login["eos.oauth.token.provider"] = "integration.short_tokens:make"
    caplog.set_level(logging.DEBUG)
    writes_through_both_clients(entered, {**login, "kafka.debug": "all"}, "function")
    assert short_tokens.made
    assert not any(token in caplog.text for token in short_tokens.made)


def inline(kafka: KafkaCluster) -> dict[str, str]:
    ann = kafka.access.authority.identity("ann")
    given = kafka.access.options("ann", "TLS")
    return {
        **{name: value for name, value in given.items() if not name.endswith("store.location")},
        "kafka.ssl.truststore.certificates": kafka.access.ca.read_text(),
        "kafka.ssl.keystore.key": ann.key.read_text(),
        "kafka.ssl.keystore.certificate.chain": ann.chain.read_text(),
    }


@pytest.mark.long
@pytest.mark.parametrize("as_text", [True, False])
def test_both_clients_take_an_encrypted_key(
    entered: KafkaCluster, tmp_path: Path, as_text: bool
) -> None:
    ann = entered.access.authority.identity("ann")
    locked = encrypt_key(ann)
    password = {"kafka.ssl.key.password": STORE_PASSWORD}
    if as_text:
        login = {**inline(entered), "kafka.ssl.keystore.key": locked}
    else:
        both = tmp_path / "both.pem"
        both.write_text(locked + ann.chain.read_text())
        given = entered.access.options("ann", "TLS")
        login = {**given, "kafka.ssl.keystore.location": str(both)}
    writes_through_both_clients(entered, {**login, **password}, f"locked-{as_text}")


@pytest.mark.long
def test_both_clients_take_pkcs12_stores(entered: KafkaCluster) -> None:
    pytest.importorskip("cryptography")
    authority = entered.access.authority
    options = {
        **entered.access.options("ann", "TLS"),
        "kafka.ssl.truststore.type": "PKCS12",
        "kafka.ssl.truststore.location": str(pkcs12_truststore(authority)),
        "kafka.ssl.truststore.password": STORE_PASSWORD,
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(pkcs12_keystore(authority.identity("ann"))),
        "kafka.ssl.keystore.password": STORE_PASSWORD,
        "kafka.ssl.key.password": STORE_PASSWORD,
    }
    writes_through_both_clients(entered, options, "pkcs12")


@pytest.mark.long
def test_an_unknown_authority_is_not_trusted(entered: KafkaCluster) -> None:
    """Without its trust store neither client goes on."""
    given = entered.access.options("ann", "SCRAM-SHA-512")
    del given["kafka.ssl.truststore.location"]
    clients = ConfluentKafka(parse_options({**given, "eos.id": "q"}).cluster, 5)
    with pytest.raises(EosSinkError):
        clients.check_topic(TOPIC, Deadline(5))
    with pytest.raises(EosSinkError):
        clients.control()


def test_what_a_user_logs_in_with_is_not_logged(
    entered: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even where both clients tell all they know; with PLAIN they send it as it is."""
    caplog.set_level(logging.DEBUG)
    told = {**entered.access.options("ann", "PLAIN"), "kafka.debug": "all"}
    writes_through_both_clients(entered, told, "told")
    loggers = {record.name for record in caplog.records}
    assert loggers >= {"eos_sink.kafka", "kafka.net.connection", "kafka.protocol.parser"}
    assert "canary" not in caplog.text.lower()


@pytest.mark.long
def test_a_private_key_is_not_logged(
    entered: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    writes_through_both_clients(entered, {**inline(entered), "kafka.debug": "all"}, "key")
    assert "ssl.key.pem = [redacted]" in caplog.text
    for line in entered.access.authority.identity("ann").key.read_text().splitlines()[1:-1]:
        assert line not in caplog.text


@pytest.mark.long
def test_a_wrong_password_ends_both_clients_and_is_not_shown(entered: KafkaCluster) -> None:
    given = entered.access.options("ann", "SCRAM-SHA-512")
    wrong = {**given, "kafka.sasl.jaas.config": 'x.ScramLoginModule required canary="canary";'}
    with pytest.raises(EosSinkError) as unread:
        parse_options({**wrong, "eos.id": "q"})
    wrong["kafka.sasl.jaas.config"] = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="canary";'
    )
    clients = ConfluentKafka(parse_options({**wrong, "eos.id": "q"}).cluster, 5)
    with pytest.raises(EosSinkError) as confluent:
        clients.check_topic(TOPIC, Deadline(5))
    with pytest.raises(EosSinkError) as python:
        clients.control()
    for error in (unread, confluent, python):
        assert "canary" not in str(error.value)
