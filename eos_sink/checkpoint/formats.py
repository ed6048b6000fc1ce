"""The files of Spark's checkpoint directory as Spark 2.2 to 4.2 write them.

A Kafka source writes its offsets as `{"topic": {"partition": next offset}}`. The file of a batch
does not name the kinds of its sources, so a source is known by the form of its offset.

Spark renames a complete file into place, so a file that is cut short was copied or restored in
part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from eos_sink.errors import EosSinkError
from eos_sink.kafka_config.source_topics import SourceTopics
from eos_sink.messages import Reason, stop
from eos_sink.protocol.values import Offsets, Place

_VOID = "-"
_PARTITION = re.compile("0|[1-9][0-9]{0,9}")


def parse_stream_id(content: bytes, file: str) -> str:
    """The id in the file `metadata`.

    Args:
        content: of the file.
        file: its name for messages.

    Raises:
        EosSinkError: the file is damaged.
    """
    stream = _parse_json(_decode(content, file), file)
    if not isinstance(stream, dict) or not isinstance(stream.get("id"), str):
        raise _damaged(file, "it has no stream id")
    return str(stream["id"])


def parse_offset_log(content: bytes, file: str) -> tuple[str, ...]:
    """The offset of each source in a file of `offsets/` (Spark's OffsetSeqLog), in Spark's text:
    read format 1, which has a line for each source, or 2, with `id:` before each offset.

    Raises:
        EosSinkError: the file is damaged, or of another format.
    """
    version, *lines = _decode(content, file).split("\n")
    _check_version(version, ("v1", "v2"), file, is_whole=bool(lines))
    sources = lines[1:] if version == "v1" else [line.partition(":")[2] for line in lines[1:]]
    if not sources or not all(sources):
        raise _damaged(file, "it lacks a source's offset")
    return tuple(sources)


def parse_batch_time(content: bytes, file: str) -> int:
    """When Spark has constructed the batch, in milliseconds since 1970 of the driver's clock: the
    `batchTimestampMs` in the second line of a file of `offsets/` (OffsetSeqMetadata).

    Raises:
        EosSinkError: the file is damaged.
    """
    lines = _decode(content, file).split("\n")
    metadata = _parse_json(lines[1], file) if len(lines) > 1 else None
    time_ms = metadata.get("batchTimestampMs") if isinstance(metadata, dict) else None
    if type(time_ms) is not int:
        raise _damaged(file, "it has no time of the batch")
    return time_ms


def parse_initial_offset(content: bytes, file: str) -> str | None:
    """The offset in a file `sources/<n>/0` of a Kafka source; None: of another kind of source.

    Spark's Kafka source writes a zero byte first, which other sources do not.

    Raises:
        EosSinkError: the file is damaged, or of another format.
    """
    if content and content[0] != 0:
        return None
    version, *rest = _decode(content[1:], file).split("\n", 1)
    _check_version(version, ("v1",), file, is_whole=bool(rest))
    if not rest[0]:
        raise _damaged(file, "it has no offset")
    return rest[0]


def read_kafka_offsets(
    sources: Iterable[tuple[str, str]], topics: SourceTopics | None
) -> Offsets | None:
    """Select the offsets of Kafka sources, and put them together.

    Args:
        sources: the offset of each source, and the file that has it.
        topics: the topics of the query's Kafka sources; None: every source counts whose offset has
            the form of Kafka's.

    Returns:
        None if no source is a Kafka source. One that has no offset yet may be any.

    Raises:
        EosSinkError: the file is damaged, or two sources read a partition.
    """
    found: dict[Place, tuple[int, str]] = {}
    is_any = False
    for offset, file in sources:
        parsed = _parse_kafka_offset(offset, file)
        if parsed is None or not _is_selected(parsed, topics):
            is_any = is_any or offset == _VOID
            continue
        is_any = True
        for topic, partitions in parsed.items():
            for number, next_offset in partitions.items():
                place, here = (topic, int(number)), (next_offset, file)
                # A batch has the offset of a DataFrame that is used twice on two lines.
                if found.setdefault(place, here) != here:
                    raise _read_twice(place, file)
    return {place: offset for place, (offset, _) in found.items()} if is_any else None


def reads_others(sources: Iterable[str], topics: SourceTopics | None, file: str) -> bool:
    """True if one of the sources is not among those whose offsets are put together: it is none of
    Kafka, or one of other topics. Which kind it is shows with its first offset.

    Args:
        sources: the offset of each.
        topics: as in `read_kafka_offsets`.
        file: the file that has them, for messages.
    """
    known = (_parse_kafka_offset(each, file) for each in sources if each != _VOID)
    return any(each is None or not _is_selected(each, topics) for each in known)


def _parse_kafka_offset(offset: str, file: str) -> dict[str, dict[str, int]] | None:
    """Return offsets by topic and partition, or None if they do not have the form of a Kafka
    source's."""
    parsed = _parse_json(offset, file) if offset.startswith("{") else None
    is_kafka = isinstance(parsed, dict) and all(map(_has_offsets, parsed.values()))
    return parsed if is_kafka else None


def _has_offsets(partitions: Any) -> bool:
    return isinstance(partitions, dict) and all(
        _PARTITION.fullmatch(number) and type(offset) is int and offset >= 0
        for number, offset in partitions.items()
    )


def _is_selected(topics_read: Collection[str], topics: SourceTopics | None) -> bool:
    """True if the options name one of its topics: an earlier batch may have read more of them."""
    return topics is None or not topics_read or any(map(topics.selects, topics_read))


def _check_version(version: str, known: tuple[str, ...], file: str, *, is_whole: bool) -> None:
    if not is_whole:
        raise _damaged(file, "it has no second line")
    if version not in known:
        formats = " and ".join(known)
        raise stop(Reason.UNKNOWN_FORMAT, file=file, format=version[:20], formats=formats)


def _decode(content: bytes, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _damaged(file, "it is not UTF-8") from None


def _parse_json(text: str, file: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _damaged(file, "it is no complete JSON") from None


def _damaged(file: str, why: str) -> EosSinkError:
    return stop(Reason.DAMAGED_FILE, file=file, why=why)


def _read_twice(place: Place, file: str) -> EosSinkError:
    return stop(Reason.READ_TWICE, file=file, topic=place[0], partition=place[1])
