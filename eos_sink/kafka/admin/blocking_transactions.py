"""The transactions behind which read_committed readers of a topic wait."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from eos_sink.errors import EosSinkError
from eos_sink.kafka.admin_interface import BlockingTransaction
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.hanging import find_open
from eos_sink.kafka.shared_clients import SharedClients


def find_blocking_transactions(
    clients: SharedClients, topic: str, stable: Mapping[int, int], deadline: Deadline
) -> dict[int, BlockingTransaction]:
    """See `eos_sink.kafka.admin_interface.Admin.blocking_transactions`."""
    control = clients.control()
    producers: dict[int, int] = {}
    names: dict[int, str] = {}
    with suppress(EosSinkError):
        opened, _ = find_open(control.wire, [topic], deadline)
        producers = {
            each.place[1]: each.producer_id
            for each in sorted(opened)
            if each.start == stable.get(each.place[1])
        }
        names = control.name_producers(producers.values(), deadline) if producers else {}
    return {n: BlockingTransaction(each, names.get(each)) for n, each in producers.items()}
