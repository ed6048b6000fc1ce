"""Kerberos, where librdkafka is built with it and the machine has MIT's programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink_lab.testing import KafkaCluster
from eos_sink_lab.testing.security import jaas
from integration.checker import read_topic
from integration.conftest import MakeRun
from integration.kerberos import REALM, Realm, is_installed
from integration.own_kafka import log_in_outside, start_own_kafka
from integration.topics import new_topic

pytestmark = pytest.mark.long

LOGIN = {"kafka_security_protocol": "SASL_PLAINTEXT", "kafka_sasl_mechanism": "GSSAPI"}
BROKER = "broker/127.0.0.1"


def has_kerberos() -> bool:
    """True if librdkafka was built with it; the wheels of confluent-kafka on PyPI are not."""
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI"}
    try:
        Producer({**settings, "sasl.kerberos.min.time.before.relogin": 0})
    except KafkaException:
        return False
    return True


@pytest.mark.skipif(has_kerberos(), reason="this librdkafka has Kerberos")
def test_a_client_without_kerberos_says_so(kafka: KafkaCluster, run: MakeRun) -> None:
    with pytest.raises(ConfigurationError, match=r"docs/connect\.md") as refused:
        run(kafka, topic="any", **LOGIN).plan()
    assert "GSSAPI" in refused.value.message


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    if not (has_kerberos() and is_installed()):
        pytest.skip("needs a librdkafka with Kerberos, krb5-kdc and krb5-admin-server")
    pytest.importorskip("gssapi")
    started = Realm(tmp_path_factory.mktemp("realm"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def guarded(realm: Realm) -> Iterator[KafkaCluster]:
    keytab = str(realm.make_keytab(BROKER))
    login = {"useKeyTab": "true", "storeKey": "true", "keyTab": keytab}
    properties = {
        **log_in_outside("GSSAPI", **login, principal=f"{BROKER}@{REALM}"),
        "sasl.kerberos.service.name": "broker",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("_JAVA_OPTIONS", f"-Djava.security.krb5.conf={realm.config}")
        cluster = start_own_kafka(proxied=True, properties=properties)
    with cluster:
        yield cluster


@pytest.fixture
def ann(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has Ann's credentials, and gets its tickets by itself."""
    monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.make_keytab("ann")))


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize(
    "named",
    [
        {"kafka_sasl_kerberos_service_name": "broker"},
        {"kafka_sasl_jaas_config": jaas("GSSAPI", useTicketCache="true", serviceName="broker")},
    ],
    ids=["setting", "JAAS"],
)
def test_both_clients_log_in_with_the_credentials_of_the_process(
    guarded: KafkaCluster, run: MakeRun, named: dict[str, str]
) -> None:
    topic = new_topic(guarded, "readings")
    for share in ("0", "900000"):
        query = run(guarded, topic=topic, eos_inline_bytes=share, **LOGIN, **named)
        query.write(value=["x"])
    assert read_topic(guarded.nodes[0].address, topic).values() == ["x", "x"]


@pytest.mark.usefixtures("ann")
def test_a_wrong_name_of_the_brokers_is_an_error_that_says_where(
    guarded: KafkaCluster, run: MakeRun
) -> None:
    with pytest.raises(ClusterError, match="Authentication") as refused:
        run(guarded, topic="any", kafka_sasl_kerberos_service_name="other", **LOGIN).plan()
    assert "kafka.sasl." in refused.value.remedy


def test_a_process_without_credentials_is_told_so(
    realm: Realm,
    guarded: KafkaCluster,
    run: MakeRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    named = {"kafka_sasl_kerberos_service_name": "broker"}
    with pytest.raises(ClusterError, match=r"(?i)credentials"):
        run(guarded, topic="any", **LOGIN, **named).plan()
