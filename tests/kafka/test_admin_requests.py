"""An answer that fails names the permission that is missing; a cluster that is silent is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from eos_sink.errors import OutcomeUnknownError
from eos_sink.kafka.admin_requests import find_topic_ids, list_brokers, unseen
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.error_codes import silence
from eos_sink.kafka.wire import Wire
from eos_sink.kafka_config.acls import Acl, Resource

ACL = Acl("Describe", Resource.TOPIC, "t")


def test_only_a_missing_permission_is_named() -> None:
    assert unseen(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), ACL).missing == (ACL,)
    silent = unseen(KafkaError(KafkaError._TIMED_OUT), ACL)
    assert (silent.missing, "brokers answer" in silent.remedy) == ((), True)


class Silent:
    """Stands for the wire to a cluster that answers nothing."""

    silence = silence()

    def run(self, *_: Any) -> None: ...
    def list_brokers(self) -> None: ...
    def fetch_metadata(self) -> None: ...


@pytest.mark.parametrize("ask", [list_brokers, lambda wire, soon: find_topic_ids(wire, None, soon)])
def test_a_cluster_that_answers_nothing_is_an_error_of_the_sink(
    ask: Callable[[Wire, Deadline], object],
) -> None:
    with pytest.raises(OutcomeUnknownError):
        ask(cast("Wire", Silent()), Deadline(0.05))
