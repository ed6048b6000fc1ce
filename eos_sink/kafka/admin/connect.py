"""The first contact with a cluster: an admin client that a broker has answered."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from eos_sink.errors import ClusterError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import LOGGER, Meaning, convert_setting_errors, get_meaning

_TRY_S = 1.0
_POLL_S = 0.05


def connected_admin(settings: dict[str, str], topic: str, deadline: Deadline) -> AdminClient:
    """A client that has asked for a topic's metadata, and has got some. Makes no topic.

    Raises:
        ClusterError: the login or a certificate was refused, or nobody answered in time. librdkafka
            would go on after a refusal until the time is up.
    """
    told: list[KafkaError] = []
    configuration: dict[str, Any] = {
        **settings,
        "error_cb": told.append,
        # Asking for a topic's metadata would make it where brokers make topics by themselves, with
        # their default number of partitions: librdkafka permits that to all but consumers.
        "allow.auto.create.topics": False,
    }
    with convert_setting_errors():
        client = AdminClient(configuration, logger=LOGGER)
    while True:
        try:
            client.list_topics(topic=topic, timeout=max(_POLL_S, min(_TRY_S, deadline.left)))
            return client
        except KafkaException as raised:
            client.poll(0)
            # By now no other broker of the list has answered either.
            refused = [error for error in told if _is_refusal(error)]
            if refused:
                raise _refusal(settings["bootstrap.servers"], refused[0]) from raised
            if deadline.passed:
                # That all are down says less than why the first one was.
                causes = [e for e in told if e.code() != KafkaError._ALL_BROKERS_DOWN]
                error = (*causes, raised.args[0])[0]
                raise _silence(settings["bootstrap.servers"], error, deadline) from raised


def _is_refusal(error: KafkaError) -> bool:
    """Neither side mends it by itself."""
    return get_meaning(error.code()) is Meaning.LOGIN_REFUSED or "SSL alert" in error.str()


def _refusal(servers: str, error: KafkaError) -> ClusterError:
    return ClusterError(
        f"The brokers at {servers} and the query do not accept each other: {error.str()}.",
        remedy="Correct the login or the certificates (kafka.security.protocol, kafka.sasl.*, "
        "kafka.ssl.*). Nothing was written.",
    )


def _silence(servers: str, error: KafkaError, deadline: Deadline) -> ClusterError:
    return ClusterError(
        f"No broker of {servers} answers within {deadline.seconds:.0f} s: {error.str()}.",
        remedy="Check kafka.bootstrap.servers, the network and the security settings "
        "(kafka.security.protocol, kafka.sasl.*, kafka.ssl.*). Nothing was written.",
    )
