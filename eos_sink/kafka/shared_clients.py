"""The connection settings of a cluster, and the clients that all calls share."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.connection.settings import (
    connection_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import (
    LOGGER,
    LOGIN_REFUSED,
    convert_setting_errors,
    describe_refusal,
    is_refusal,
)
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.cluster_config import ClusterConfig

if TYPE_CHECKING:
    from eos_sink.kafka.transaction_control import KafkaPythonControl

FIRST_ANSWER_S = 30.0
# librdkafka looks for a broker to connect to no more often than each half of this time, and drops
# the connection of the bootstrap as soon as it has the first one's answer: with its default of
# 100 ms the first answer takes a client 54 ms instead of 15, and a join 62 instead of 21 (measured;
# rd_kafka_connect_any). It doubles with each failure as before.
_FAST_RECONNECT = {"reconnect.backoff.ms": "10"}
_WITHOUT_TLS = ("plaintext", "sasl_plaintext")
_TRY_S = 1.0
# Some clusters refuse logins above a number in a second, as they refuse wrong ones.
_REFUSED_S = 3.0
_POLL_S = 0.05


class SharedClients:
    """Connects at the first use of a client, until it is closed.

    Args:
        config: of the cluster.
        first_answer_s: how long it may take until a broker answers at all.
    """

    def __init__(self, config: ClusterConfig, first_answer_s: float = FIRST_ANSWER_S) -> None:
        self.config = config
        self.permissions = Permissions(config.prefix, config.log_topic)
        self._first_answer_s = first_answer_s
        self._control: KafkaPythonControl | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._was_renewed = False
        self._read_from: dict[str, int] = {}
        self._settings: dict[str, Any] = {}
        self._read()

    @property
    def producer_settings(self) -> dict[str, Any]:
        """All settings of a producer, for librdkafka."""
        self._read()
        return self._settings

    @property
    def connection(self) -> dict[str, Any]:
        """Those of them that say how to reach the brokers, for clients that are no producers."""
        return {**_FAST_RECONNECT, **connection_settings(self.producer_settings)}

    def _read(self) -> None:
        """Read the settings, and again if a key or a certificate was renewed at its path."""
        client = self.config.client
        paths = [each.location for each in client.stores]
        paths += [path for name, path in client.settings.items() if name.endswith(".location")]
        found = {path: _changed_ns(path) for path in paths}
        if not self._settings or found != self._read_from:
            self._was_renewed = bool(self._settings)
            self.renew()
            self._settings, self._read_from = librdkafka_settings(client), found

    def control(self) -> KafkaPythonControl:
        try:
            self._read()
            return self._control or self._connect()
        except (ClusterError, ConfigurationError) as error:
            if not self._was_renewed:
                raise
            # In the middle of a batch, which may be decided.
            correct = error.remedy.removesuffix(" Nothing was written.")
            remedy = f"{correct} Then start the query again."
            raise type(error)(error.message, remedy=remedy, data=error.data) from error

    def _connect(self) -> KafkaPythonControl:
        # Tasks never need kafka-python, whose import takes longer than their transaction.
        from eos_sink.kafka.transaction_control import KafkaPythonControl

        deadline = Deadline(min(FIRST_ANSWER_S, self._first_answer_s))
        # librdkafka says why a login is refused; kafka-python only says that no broker answers.
        connection = self.connection
        answered = check_login(connection, self.config.log_topic, deadline)
        # kafka-python would wait for a server that is down, or silent, before it asks the next.
        settings = {**kafka_python_settings(connection), "bootstrap_servers": answered}
        return self._keep(KafkaPythonControl(settings, self.permissions, deadline))

    def _keep(self, made: KafkaPythonControl) -> KafkaPythonControl:
        """One for all threads: one that opens the log may go on after others have given it up."""
        with self._lock:
            if self._control is None and not self._is_closed:
                self._control = made
            else:
                made.close()
            if self._control is None:
                raise RuntimeError("The clients were closed.")
            return self._control

    def close(self) -> None:
        """Close them for good."""
        with self._lock:
            self._is_closed = True
            self.renew()

    def renew(self) -> None:
        """Close what is there; the next call that needs it makes it again."""
        if self._control is not None:
            self._control.close()
        self._control = None


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0  # The client that reads it says what is wrong.


def check_login(settings: dict[str, str], topic: str, deadline: Deadline) -> list[str]:
    """Wait until a broker answers a client about a topic, which is not created.

    Returns:
        The addresses of all live brokers, the one that has answered first.

    Raises:
        ClusterError: the login or a certificate was refused, or no broker answered in time.
            librdkafka itself would go on after a refusal until the time is up.
    """
    errors: list[KafkaError] = []
    refusing = deadline.within(_REFUSED_S)
    configuration: dict[str, Any] = {
        **settings,
        "error_cb": errors.append,
        # Asking for a topic's metadata would create it where brokers create topics automatically,
        # with their default number of partitions: librdkafka permits that to all but consumers.
        "allow.auto.create.topics": False,
    }
    with convert_setting_errors():
        client = AdminClient(configuration, logger=LOGGER)
    servers = settings["bootstrap.servers"]
    while True:
        try:
            found = client.list_topics(topic, timeout=max(_POLL_S, min(_TRY_S, deadline.left)))
        except KafkaException as raised:
            client.poll(0)
            # By now no other broker of the list has answered either.
            refusals = [error.str() for error in filter(is_refusal, errors)]
            if refusals and (refusing.passed or "SSL alert" in refusals[0]):
                text = f"{describe_refusal(refusals[0])}."
                raise ClusterError(text, remedy=LOGIN_REFUSED) from raised
            if deadline.passed:
                # "All brokers are down" says less than why the first one was.
                causes = [e for e in errors if e.code() != KafkaError._ALL_BROKERS_DOWN]
                cause = (*causes, raised.args[0])[0].str()
                if not causes and settings.get("security.protocol", "plaintext") in _WITHOUT_TLS:
                    # librdkafka has no error for a connection that the broker closes at once.
                    cause += (
                        "; this also happens if the port expects TLS, and kafka.security.protocol "
                        "is neither SSL nor SASL_SSL"
                    )
                raise ClusterError(
                    f"No broker of {servers} answers within {deadline.seconds:.0f} s: {cause}.",
                    remedy="Check kafka.bootstrap.servers, the network and the security settings "
                    "(kafka.security.protocol, kafka.sasl.*, kafka.ssl.*). Nothing was written.",
                ) from raised
        else:
            brokers = sorted(found.brokers.values(), key=lambda it: it.id != found.orig_broker_id)
            hosts = [(f"[{it.host}]" if ":" in str(it.host) else it.host) for it in brokers]
            return [f"{host}:{it.port}" for host, it in zip(hosts, brokers, strict=True)]
