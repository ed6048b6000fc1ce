"""The format of a record in the decision log.

JSON: an object for each dataclass, as its fields and their types say. One array for each
transaction, so that ten thousand tasks fit into a megabyte. Nothing from Kafka is unpickled or
evaluated. A record of another format is an error, never a guess.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache, partial
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from eos_sink.errors import OperatorNeededError
from eos_sink.messages import Reason, stop
from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepTime
from eos_sink.protocol.model import (
    BatchId,
    Claim,
    DeadLetters,
    Decision,
    Inlined,
    LogRecord,
    Numbering,
    Prepared,
    RowDigest,
    StartNote,
)
from eos_sink.protocol.values import Offsets, Place, Position, ProducerIdentity
from eos_sink.protocol.written import WrittenNumbers

FORMAT = 4

D = TypeVar("D")
T = TypeVar("T", str, bool, int, list[Any], dict[str, Any])


def encode(value: LogRecord | Claim | StartNote, **more: str) -> bytes:
    """Args:
    more: fields that tell what it is.
    """
    document = {"format": FORMAT, **more, **_encode_object(value)}
    return json.dumps(document, separators=(",", ":")).encode()


def decode(value: bytes, where: str) -> LogRecord:
    """Raises:
    OperatorNeededError: the record is not of this format.
    """
    return decode_as(LogRecord, value, where)


def decode_as(kind: type[D], value: bytes, where: str) -> D:
    """Raises:
    OperatorNeededError: as `decode`.
    """
    try:
        document = json.loads(value)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        of: Any = kind
        return cast(D, _object_decoder(of)(document))
    # Another program may have written anything, such as a thousand brackets.
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise stop(Reason.UNREADABLE_RECORD, where=where, error=error) from error


def newer_format(value: bytes) -> int | None:
    """The format of a record that a newer version wrote; None: no newer version did."""
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(value)
        if type(document["format"]) is int and document["format"] > FORMAT:
            return int(document["format"])
    return None


def is_record(value: bytes) -> bool:
    """True if a record is one of the sink's, in the format of this version."""
    with contextlib.suppress(OperatorNeededError):
        decode(value, "")
        return True
    return is_claim(value)


def is_claim(value: bytes) -> bool:
    """True if a record of the log is no query's, but about a stream or a group."""
    try:
        return type(json.loads(value)["subject"]) is str
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _encode(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _OWN:
        return _OWN[kind][0](value)
    if kind in _ARRAYS:
        return [_encode(getattr(value, name)) for name, _ in _defaults(kind)]
    if is_dataclass(value):
        return _encode_object(value)
    if kind in (tuple, frozenset):
        return [_encode(each) for each in (value if kind is tuple else sorted(value))]
    if isinstance(value, Mapping):
        return dict(value) if all(type(key) is str for key in value) else _encode_offsets(value)
    return value


def _encode_object(value: Any) -> dict[str, Any]:
    """Leave out what has its default value."""
    kind: Any = type(value)
    given = ((name, getattr(value, name), default) for name, default in _defaults(kind))
    return {
        name: _encode(one) for name, one, default in given if one is not None and one != default
    }


@cache
def _defaults(kind: Any) -> list[tuple[str, Any]]:
    every = fields(kind)
    made = (of.default if of.default_factory is MISSING else of.default_factory() for of in every)
    return [(of.name, default) for of, default in zip(every, made, strict=True)]


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """The function that decodes values of a type. Types are looked at once: a plan reads each
    record of its query, and a record may have ten thousand tasks."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in _OWN:
        return _OWN[kind][1]
    if hasattr(kind, "__dataclass_fields__"):
        return _object_decoder(kind)
    if origin is UnionType:
        return _decoder(args[0])
    if origin in (tuple, frozenset):
        of = _decoder(args[0])
        return lambda values: origin(map(of, _typed(list, values)))
    if origin is Mapping:
        return _decode_offsets if args[1] is int else _decode_names
    return _number if kind is int else partial(_typed, kind)


@cache
def _object_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    decoders = {name: _decoder(of) for name, of in hints.items()}
    unset = {name: None for name, of in hints.items() if type(None) in get_args(of)}

    def decode_object(document: Any) -> Any:
        if kind in _ARRAYS:
            document = dict(zip(hints, _typed(list, document), strict=True))
        _typed(dict, document)
        found = {name: of(document[name]) for name, of in decoders.items() if name in document}
        return kind(**unset | found)

    return decode_object


def _encode_decision(decision: Decision) -> dict[str, Any]:
    topics = list(decision.topics)
    prepared = [
        [
            entry.partition,
            entry.producer_id,
            entry.epoch,
            *_encode(entry.digest),
            topics.index(entry.witness.topic),
            entry.witness.partition,
            entry.witness.offset,
        ]
        for entry in decision.prepared
    ]
    # The default is this version's, not that of the next one.
    document = _encode_object(replace(decision, prepared=()))
    return {**document, "digest": decision.digest, "prepared": prepared}


def _decode_decision(document: Any) -> Decision:
    decision: Decision = _object_decoder(Decision)({"digest": 0, **document, "prepared": []})
    topics, decode_digest = list(decision.topics), _decoder(RowDigest)
    prepared = tuple(
        Prepared(
            _number(partition),
            _number(producer_id),
            _number(epoch),
            decode_digest(digest),
            Position(topics[_number(topic)], _number(place), _number(offset)),
        )
        for partition, producer_id, epoch, *digest, topic, place, offset in document["prepared"]
    )
    return replace(decision, prepared=prepared)


def _encode_written(written: WrittenNumbers) -> list[Any]:
    """A range of one number is written as that alone."""
    return [written.forgotten_below, *(sorted({*each}) for each in written.ranges)]


def _decode_written(values: Any) -> WrittenNumbers:
    below, *ranges = values
    every = [(_number(each[0]), _number(each[-1])) for each in ranges]
    bounds = [bound for low, high in every for bound in (low, high)]
    if bounds != sorted(bounds):
        raise ValueError("ranges are not in order")
    return WrittenNumbers(tuple(every), _number(below))


def _encode_offsets(offsets: Offsets) -> dict[str, list[list[int]]]:
    """By topic: partitions and their offsets."""
    topics: dict[str, list[list[int]]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, []).append([partition, offset])
    return topics


def _decode_offsets(document: Any) -> dict[Place, int]:
    rows = ((topic, *row) for topic, rows in document.items() for row in rows)
    return {(topic, _number(partition)): _number(offset) for topic, partition, offset in rows}


def _decode_names(document: Any) -> dict[str, str]:
    return {name: _typed(str, value) for name, value in document.items()}


def _encode_batch(batch: BatchId) -> list[Any]:
    return [batch.stream, batch.batch]


def _decode_batch(values: Any) -> BatchId:
    """A source's position before a stream's first batch has the number -1."""
    stream, number = values
    return BatchId(_typed(str, stream), _typed(int, number))


def _encode_stats(stats: Stats) -> dict[str, Any]:
    document = {
        "counts": {count.label: number for count, number in stats.counts.items()},
        "steps": {
            step.label: [took.total_us, took.count, took.last_us]
            for step, took in stats.steps.items()
        },
        "decided": stats.decided_ms or None,
        "left": stats.left_ms,
        "timeout": stats.timeout_ms,
    }
    return {name: value for name, value in document.items() if value not in (None, {})}


def _decode_stats(document: Any) -> Stats:
    """Figures never stop a batch: unreadable ones count as none, so that the counters restart, as
    Prometheus expects of counters. Those that a later version has added are ignored."""
    try:
        counts, steps = document.get("counts", {}), document.get("steps", {})
        left, timeout = document.get("left"), document.get("timeout")
        return Stats(
            counts={c: _number(counts[c.label]) for c in Count if c.label in counts},
            steps={s: _decode_time(*steps[s.label]) for s in Step if s.label in steps},
            decided_ms=_number(document.get("decided", 0)),
            left_ms=None if left is None else _number(left),
            timeout_ms=None if timeout is None else _number(timeout),
        )
    except (ValueError, TypeError, AttributeError):
        return Stats()


def _decode_time(total: Any, count: Any, last: Any) -> StepTime:
    return StepTime(_number(total), _number(count), _number(last))


def _number(value: Any) -> int:
    if _typed(int, value) < 0:
        raise ValueError(f"{value!r} is negative")
    return int(value)


def _typed(kind: type[T], value: Any) -> T:
    """Not `isinstance`: True is no number."""
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not of type {kind.__name__}")
    return value


# Those with a form of their own, and those that are arrays of their fields.
_OWN: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    BatchId: (_encode_batch, _decode_batch),
    Decision: (_encode_decision, _decode_decision),
    Numbering: (attrgetter("name"), lambda name: Numbering[name]),
    Stats: (_encode_stats, _decode_stats),
    WrittenNumbers: (_encode_written, _decode_written),
}
_ARRAYS = (DeadLetters, Inlined, ProducerIdentity, RowDigest)
