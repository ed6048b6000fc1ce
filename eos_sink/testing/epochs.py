"""Bringing a transactional id to the end of its epochs, with as many requests as that takes."""

from __future__ import annotations

from typing import Any

from kafka.protocol.producer.transaction import InitProducerIdRequest

from eos_sink.errors import EosSinkError
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import ProducerIdentity
from eos_sink.kafka.wire import Wire
from eos_sink.testing.errors import NotReadyError, TestClusterError

LAST_EPOCH = 32_766
"""Handed out last; 32,767 is reserved for fencing. After it comes a new producer id."""

# In flight at once. The broker answers them one by one: what is saved is the way to and fro.
_AT_ONCE = 500
_TRANSACTION_MS = 60_000


def exhaust_epoch(
    addresses: str, transactional_id: str, last: int, deadline: Deadline
) -> ProducerIdentity:
    """See `eos_sink.testing.interventions.Interventions.exhaust_epoch`."""
    try:
        wire = Wire({"bootstrap_servers": addresses.split(",")}, deadline)
        try:
            latest = _init(wire, transactional_id, 1, deadline)
            while latest is None or latest.epoch < last:
                if deadline.passed:
                    raise NotReadyError(
                        f"{transactional_id} got to {latest} within {deadline.seconds:g} s, "
                        f"not to epoch {last}."
                    )
                left = 1 if latest is None else last - latest.epoch
                # One that is lost on the way counts too: `left` is an upper bound, then asked anew.
                latest = _init(wire, transactional_id, min(left, _AT_ONCE), deadline) or latest
            return latest
        finally:
            wire.close()
    except EosSinkError as error:
        raise TestClusterError(f"Kafka did not do it: {error}") from error


def _init(wire: Wire, name: str, times: int, deadline: Deadline) -> ProducerIdentity | None:
    """The latest identity after so many requests; None if none was answered well."""

    async def send() -> dict[int, Any]:
        asked = wire.send(wire.find_coordinators_request([name]), None, deadline)
        found = (await wire.gather({0: asked}, deadline))[0]
        if found is None or found.coordinators[0].error_code:
            return {}
        node = found.coordinators[0].node_id
        requests = {number: wire.send(_request(name), node, deadline) for number in range(times)}
        return await wire.gather(requests, deadline)

    answers = [answer for answer in wire.run(send).values() if answer and not answer.error_code]
    if not answers:
        return None
    return ProducerIdentity(answers[-1].producer_id, answers[-1].producer_epoch)


def _request(name: str) -> Any:
    return InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=_TRANSACTION_MS,
        producer_id=-1,
        producer_epoch=-1,
        max_version=5,
    )
