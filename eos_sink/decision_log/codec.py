"""The format of a record in the decision log.

JSON with one array for each transaction, so that ten thousand tasks fit into a megabyte. Nothing
from Kafka is unpickled or evaluated. A record of another format is an error, never a guess.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, TypeVar

from eos_sink.errors import OperatorNeededError
from eos_sink.identity import Origin, QueryNames
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
    Override,
    Prepared,
    Route,
    RowDigest,
    Run,
    SourcePosition,
)
from eos_sink.protocol.values import Offsets, Place, Position, ProducerIdentity
from eos_sink.protocol.written import WrittenNumbers

FORMAT = 4
_CLAIMS = "claims"

T = TypeVar("T", str, bool, int)


def encode(record: LogRecord) -> bytes:
    document: dict[str, Any] = {
        "format": FORMAT,
        "seq": record.seq,
        "writer": record.writer,
        "prefix": record.prefix,
    }
    if record.producer is not None:
        document["producer"] = _encode_producer(record.producer)
    if record.retired:
        document["retired"] = [[each.stream, each.batch] for each in record.retired]
    if record.dropped is not None:
        document["dropped"] = [record.dropped.stream, record.dropped.batch]
    if record.run is not None:
        document["owner"] = _encode_run(record.run)
    if record.stats != Stats():
        document["stats"] = _encode_stats(record.stats)
    if record.settled:
        document["settled"] = True
    if record.given_up:
        document["given_up"] = record.given_up
    if record.decision is not None:
        document["decision"] = _encode_decision(record.decision)
    if record.source is not None:
        document["source"] = _encode_source(record.source)
    if record.written.ranges:
        document["written"] = [
            record.written.forgotten_below,
            *(sorted({*each}) for each in record.written.ranges),
        ]
    return json.dumps(document, separators=(",", ":")).encode()


def decode(value: bytes, where: str) -> LogRecord:
    """Raises:
    OperatorNeededError: the record is not of this format.
    """
    try:
        document = json.loads(value)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        return LogRecord(
            seq=_number(document["seq"]),
            decision=_decode_decision(document["decision"]) if "decision" in document else None,
            writer=str(document["writer"]),
            retired=tuple(_decode_batch(*each) for each in document.get("retired", [])),
            run=_decode_run(document["owner"]) if "owner" in document else None,
            prefix=_typed(str, document["prefix"]),
            stats=_decode_stats(document["stats"]) if "stats" in document else Stats(),
            settled=document.get("settled") is True,
            given_up=_number(document.get("given_up", 0)),
            dropped=_decode_batch(*document["dropped"]) if "dropped" in document else None,
            source=_decode_source(document["source"]) if "source" in document else None,
            producer=_decode_producer(document["producer"]) if "producer" in document else None,
            written=_decode_written(*document.get("written", [0])),
        )
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


def _encode_decision(decision: Decision) -> dict[str, Any]:
    topics = list(decision.topics)
    document: dict[str, Any] = {
        "stream": decision.batch.stream,
        "batch": decision.batch.batch,
        "slot": decision.slot,
        "partitions": decision.partitions,
        "total": _encode_digest(decision.total),
        "topics": dict(decision.topics),
        "prepared": [
            [
                entry.partition,
                entry.producer_id,
                entry.epoch,
                *_encode_digest(entry.digest),
                topics.index(entry.witness.topic),
                entry.witness.partition,
                entry.witness.offset,
            ]
            for entry in decision.prepared
        ],
    }
    override = decision.override
    if override != Override():
        document["ruling"] = {
            "visible": sorted(override.visible),
            "lost": sorted(override.lost),
            "accepted": override.accepted,
        }
    if decision.by_row:
        document["by_row"] = True
    if decision.completed:
        document["completed"] = True
    if decision.by_partition:
        document["by_partition"] = decision.by_partition
    if decision.spark_run:
        document["run"] = decision.spark_run
    if decision.inlined:
        document["inline"] = [
            [each.partition, *_encode_producer(each.producer), *_encode_digest(each.digest)]
            for each in decision.inlined
        ]
    if decision.dead_letters:
        letters = [[each.partition, each.rows] for each in decision.dead_letters]
        document["dead_letters"] = letters
    if decision.route != Route():
        document["route"] = vars(decision.route)
    return document


def _decode_decision(document: Any) -> Decision:
    topics = _decode_ids(document["topics"])
    names = list(topics)
    override = Override()
    if "ruling" in document:
        override = Override(
            visible=frozenset(map(_number, document["ruling"]["visible"])),
            lost=frozenset(map(_number, document["ruling"]["lost"])),
            accepted=_typed(bool, document["ruling"]["accepted"]),
        )
    return Decision(
        batch=BatchId(str(document["stream"]), _number(document["batch"])),
        slot=_number(document["slot"]),
        partitions=_number(document["partitions"]),
        total=_decode_digest(document["total"]),
        prepared=tuple(
            Prepared(
                _number(partition),
                _number(producer_id),
                _number(epoch),
                _decode_digest(digest),
                Position(names[_number(topic)], _number(place), _number(offset)),
            )
            for partition, producer_id, epoch, *digest, topic, place, offset in document["prepared"]
        ),
        override=override,
        spark_run=str(document.get("run", "")),
        inlined=tuple(
            Inlined(
                _number(partition), _decode_digest(digest), _decode_producer([producer_id, epoch])
            )
            for partition, producer_id, epoch, *digest in document.get("inline", [])
        ),
        dead_letters=tuple(
            DeadLetters(_number(partition), _number(rows))
            for partition, rows in document.get("dead_letters", [])
        ),
        by_row=document.get("by_row") is True,
        completed=document.get("completed") is True,
        by_partition=str(document.get("by_partition", "")),
        topics=topics,
        route=_decode_route(**document.get("route", vars(Route()))),
    )


def _decode_route(topic: Any, dead_letters: Any, partitioner: Any) -> Route:
    return Route(_optional(topic), _optional(dead_letters), _typed(str, partitioner))


def _optional(name: Any) -> str | None:
    return None if name is None else _typed(str, name)


def _decode_ids(document: Any) -> dict[str, str]:
    return {topic: _typed(str, topic_id) for topic, topic_id in document.items()}


def _decode_batch(stream: Any, batch: Any) -> BatchId:
    return BatchId(_typed(str, stream), _number(batch))


def _decode_written(below: Any, *ranges: Any) -> WrittenNumbers:
    """A range of one number is written as that alone."""
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
        _decode_ids(document.get("topic_ids", {})),
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


def _encode_run(run: Run) -> dict[str, Any]:
    document = {
        "host": run.host,
        "pid": run.pid,
        "started": run.started_ms,
        "id": run.origin.eos_id,
        "checkpoint": run.origin.checkpoint,
        "name": run.origin.name,
        "batch": run.origin.batch or None,
        "tool": run.tool,
        "session": run.session,
        "boot": run.boot_id,
        "pid_namespace": run.pid_namespace,
    }
    return {name: value for name, value in document.items() if value not in (None, "")}


def _decode_run(document: Any) -> Run:
    named = [document.get(name) for name in ("id", "checkpoint", "name")]
    eos_id, checkpoint, name = (None if value is None else str(value) for value in named)
    return Run(
        host=str(document.get("host", "")),
        pid=_number(document["pid"]),
        started_ms=_number(document["started"]),
        origin=Origin(eos_id, checkpoint, name, batch=document.get("batch") is True),
        tool=str(document.get("tool", "")),
        session=str(document.get("session", "")),
        boot_id=str(document.get("boot", "")),
        pid_namespace=str(document.get("pid_namespace", "")),
    )


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


def _encode_producer(producer: ProducerIdentity | None) -> list[int]:
    assert producer is not None, "of a record that is not written"
    return [producer.producer_id, producer.epoch]


def _decode_producer(values: Any) -> ProducerIdentity:
    producer_id, epoch = values
    return ProducerIdentity(_number(producer_id), _number(epoch))


def _encode_digest(digest: RowDigest) -> list[int]:
    return [digest.rows, digest.bytes, digest.fingerprint]


def _decode_digest(values: Any) -> RowDigest:
    rows, size, fingerprint = values
    return RowDigest(_number(rows), _number(size), _number(fingerprint))


def _number(value: Any) -> int:
    if _typed(int, value) < 0:
        raise ValueError(f"{value!r} is negative")
    return int(value)


def _typed(kind: type[T], value: Any) -> T:
    """Not `isinstance`: True is no number."""
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not of type {kind.__name__}")
    return value
