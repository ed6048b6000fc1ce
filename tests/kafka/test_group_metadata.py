"""The layout of confluent-kafka's group metadata."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from eos_sink.errors import ClusterError
from eos_sink.kafka.group_metadata import GroupMetadata, read_group_metadata


@pytest.mark.parametrize("instance", [None, "", "query-driver"])
def test_what_the_installed_client_writes_is_read(instance: str | None) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "group", "log_level": 0}
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    found = read_group_metadata(bytes(consumer.consumer_group_metadata()))
    # librdkafka takes an empty instance id for none.
    assert found == GroupMetadata("group", -1, "", instance or None)
    consumer.close()


def test_a_member_is_read() -> None:
    content = b"CGMDv2:" + (258).to_bytes(4, "little") + b"g\0member-1\0\0i\0"
    assert read_group_metadata(content) == GroupMetadata("g", 258, "member-1", "i")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"CGMDv2:\0\0",
        b"CGMDv3:\0\0\0\0g\0m\0\1",
        b"CGMDv2:\0\0\0\0g\0m",
        b"CGMDv2:\0\0\0\0g\0m\0\0i",
        b"CGMDv2:\0\0\0\0g\0m\0\1i\0",
        b"CGMDv2:\0\0\0\0g\0m\0\0i\0more\0",
    ],
)
def test_another_layout_is_an_error(content: bytes) -> None:
    with pytest.raises(ClusterError):
        read_group_metadata(content)
