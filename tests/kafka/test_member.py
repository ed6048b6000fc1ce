"""What a member says that cannot join its group."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import ClusterError
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.kafka.deadline import Deadline
from tests.protocol.world import options


def test_a_refusal_is_the_cause_of_what_is_said_later() -> None:
    cluster = options(**{"kafka.bootstrap.servers": "127.0.0.1:1"}).cluster
    with (
        closing(ConfluentKafka(cluster)) as kafka,
        closing(kafka.member("a-group", "a-driver", 60_000)) as member,
    ):
        member._note_error(KafkaError(KafkaError._SSL, "certificate verify failed"))
        member._note_error(KafkaError(KafkaError._TRANSPORT, "Disconnected"))
        with pytest.raises(ClusterError, match="handshake failed: certificate") as raised:
            member.join(Deadline(0))
    assert "docs/connect.md#expired-certificates" in raised.value.remedy
