"""confluent-kafka's opaque group metadata, which an offset of a transaction needs (KIP-447)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from eos_sink.errors import ClusterError

_MAGIC = b"CGMDv2:"


@dataclass(frozen=True)
class GroupMetadata:
    """A member of a consumer group; `instance` is None for a dynamic one."""

    group: str
    generation: int
    member: str
    instance: str | None


def read_group_metadata(content: bytes) -> GroupMetadata:
    """Read what `Consumer.consumer_group_metadata` returns.

    From rd_kafka_consumer_group_metadata_write of librdkafka 1.6 and later: the generation in this
    machine's byte order, texts that end with a zero byte, and before the instance id a byte that
    says whether there is none.

    Raises:
        ClusterError: it has another layout.
    """
    start = len(_MAGIC)
    body = start + struct.calcsize("=i")
    try:
        if not content.startswith(_MAGIC):
            raise ValueError(content[:start])
        (generation,) = struct.unpack_from("=i", content, start)
        group, member, rest = content[body:].split(b"\0", 2)
        # The member may be unknown (empty), the instance may be missing.
        if rest == b"\1":
            instance = None
        elif rest[:1] == b"\0" and rest.endswith(b"\0") and rest.count(b"\0") == 2:
            instance = rest[1:-1].decode()
        else:
            raise ValueError(rest)
        return GroupMetadata(group.decode(), generation, member.decode(), instance)
    except (ValueError, struct.error) as error:
        raise ClusterError(
            "The group metadata of confluent-kafka has a layout that this version does not know.",
            remedy="Install a version of confluent-kafka that this version of eos-sink was tested "
            "with (see its release notes).",
        ) from error
