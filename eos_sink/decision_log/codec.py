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
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from eos_sink.errors import OperatorNeededError
from eos_sink.identity import QueryNames
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
    SourcePosition,
)
from eos_sink.protocol.values import Offsets, Place, Position, ProducerIdentity
from eos_sink.protocol.written import WrittenNumbers

FORMAT = 4
_CLAIMS = "claims"

T = TypeVar("T", str, bool, int, list[Any], dict[str, Any])


def encode(record: LogRecord) -> bytes:
    document = {"format": FORMAT, **_encode_object(record)}
    return json.dumps(document, separators=(",", ":")).encode()


def decode(value: bytes, where: str) -> LogRecord:
    """Raises:
    OperatorNeededError: the record is not of this format.
    """
    try:
        document = json.loads(value)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        record: LogRecord = _decode_object(LogRecord, document)
        return record
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


def encode_claim(claim: Claim) -> bytes:
    document = {
        "format": FORMAT,
        _CLAIMS: claim.subject,
        "prefix": claim.names.prefix,
        "query": claim.names.query,
        "numbering": claim.numbering.name,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def is_claim(value: bytes) -> bool:
    """True if a record of the log is no query's, but a claim."""
    try:
        return type(json.loads(value)[_CLAIMS]) is str
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def decode_claim(value: bytes, key: str) -> Claim:
    """Raises:
    OperatorNeededError: it is no claim of this format, or its key belongs to another one.
    """
    try:
        document = json.loads(value)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        names = QueryNames(_typed(str, document["prefix"]), _typed(str, document["query"]))
        subject = _typed(str, document[_CLAIMS])
        claim = Claim(names, subject, Numbering[document["numbering"]])
        if claim.key != key:
            raise ValueError(f"the claim of {names.group} to {subject}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise stop(Reason.UNREADABLE_RECORD, where=key, error=error) from error
    return claim


def _encode(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _OWN:
        return _OWN[kind][0](value)
    if kind in _ARRAYS:
        return [_encode(getattr(value, name)) for name, _ in _defaults(kind)]
    if is_dataclass(value):
        return _encode_object(value)
    if kind is tuple:
        return [_encode(each) for each in value]
    if kind is frozenset:
        return sorted(value)
    return dict(value) if isinstance(value, Mapping) else value


def _encode_object(value: Any) -> dict[str, Any]:
    """What has its default takes no room."""
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


def _decode(kind: Any, value: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind in _OWN:
        return _OWN[kind][1](value)
    if is_dataclass(kind):
        return _decode_object(kind, value)
    if origin is UnionType:
        return _decode(args[0], value)
    if origin in (tuple, frozenset):
        return origin(_decode(args[0], each) for each in _typed(list, value))
    if origin is Mapping:
        return {_typed(str, key): _decode(args[1], one) for key, one in value.items()}
    return _number(value) if kind is int else _typed(kind, value)


def _decode_object(kind: Any, document: Any) -> Any:
    hints = _hints(kind)
    if kind in _ARRAYS:
        document = dict(zip(hints, _typed(list, document), strict=True))
    unset = {name: None for name, of in hints.items() if type(None) in get_args(of)}
    found = {
        name: _decode(of, document[name])
        for name, of in hints.items()
        if name in _typed(dict, document)
    }
    return kind(**{**unset, **found})


_hints = cache(get_type_hints)


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
    return {**_encode_object(replace(decision, prepared=())), "prepared": prepared}


def _decode_decision(document: Any) -> Decision:
    decision: Decision = _decode_object(Decision, {**document, "prepared": []})
    topics = list(decision.topics)
    prepared = tuple(
        Prepared(
            _number(partition),
            _number(producer_id),
            _number(epoch),
            _decode(RowDigest, digest),
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


def _encode_source(source: SourcePosition) -> dict[str, Any]:
    document: dict[str, Any] = {
        "group": source.group,
        "stream": source.batch.stream,
        "batch": source.batch.batch,
        "read": _encode_offsets(source.start, source.end),
    }
    if source.topics:
        document["topic_ids"] = dict(source.topics)
    if source.left:
        document["left"] = _encode_offsets(source.left)
    if source.stale:
        document["stale"] = True
    if source.stateful:
        document["stateful"] = True
    if source.others:
        document["others"] = True
    return document


def _decode_source(document: Any) -> SourcePosition:
    start, end = _decode_offsets(document["read"], 2)
    (left,) = _decode_offsets(document.get("left", {}), 1)
    return SourcePosition(
        _typed(str, document["group"]),
        BatchId(str(document["stream"]), _typed(int, document["batch"])),
        start,
        end,
        left,
        _decode(Mapping[str, str], document.get("topic_ids", {})),
        stale=document.get("stale") is True,
        stateful=document.get("stateful") is True,
        others=document.get("others") is True,
    )


def _encode_offsets(*each: Offsets) -> dict[str, list[list[int]]]:
    """By topic: the partition, and its offset in each of the mappings, which have the same keys."""
    topics: dict[str, list[list[int]]] = {}
    for topic, partition in sorted(each[0]):
        offsets = [some[topic, partition] for some in each]
        topics.setdefault(topic, []).append([partition, *offsets])
    return topics


def _decode_offsets(document: Any, number: int) -> list[dict[Place, int]]:
    found: list[dict[Place, int]] = [{} for _ in range(number)]
    for topic, rows in document.items():
        for partition, *offsets in rows:
            for some, offset in zip(found, offsets, strict=True):
                some[str(topic), _number(partition)] = _number(offset)
    return found


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
    Decision: (_encode_decision, _decode_decision),
    SourcePosition: (_encode_source, _decode_source),
    Stats: (_encode_stats, _decode_stats),
    WrittenNumbers: (_encode_written, _decode_written),
}
_ARRAYS = (BatchId, DeadLetters, Inlined, ProducerIdentity, RowDigest)
