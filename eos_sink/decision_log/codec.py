"""The format of a record in the decision log.

JSON, with one array a transaction, so that ten thousand tasks fit into a megabyte. Nothing that
comes from Kafka is unpickled or evaluated, and a record of another format is an error, never a
guess.
"""

from __future__ import annotations

import json
from typing import Any

from eos_sink.decision_log.stats_format import of_stats, read_stats
from eos_sink.identity import Origin, QueryNames
from eos_sink.kafka.interfaces import Witness
from eos_sink.metrics.stats import Stats
from eos_sink.protocol import operator_errors
from eos_sink.protocol.model import (
    BatchId,
    Decision,
    LogRecord,
    OtherStream,
    Override,
    Prepared,
    RowDigest,
    Run,
)

FORMAT = 1
_MOVED_FORMAT = 2
_MOVED = "moved"


def encode(record: LogRecord) -> bytes:
    decision = record.decision
    document: dict[str, Any] = {"format": FORMAT, "seq": record.seq, "writer": record.writer}
    if record.other_streams:
        # Two fields, since an older version reads pairs, and reads past what it does not know.
        document["earlier"] = [
            [each.batch.stream, each.batch.batch] for each in record.other_streams
        ]
        document["totals"] = [_of_earlier(each) for each in record.other_streams]
    if record.run is not None:
        document["owner"] = _of_run(record.run)
    if record.prefix:
        document["prefix"] = record.prefix
    if record.stats != Stats():
        document["stats"] = of_stats(record.stats)
    if record.settled:
        document["settled"] = True
    if decision is not None:
        topics = decision.topics
        document["decision"] = {
            "stream": decision.batch.stream,
            "batch": decision.batch.batch,
            "slot": decision.slot,
            "partitions": decision.partitions,
            "total": _digest(decision.total),
            "topics": topics,
            "prepared": [
                [
                    entry.partition,
                    entry.producer_id,
                    entry.epoch,
                    *_digest(entry.digest),
                    topics.index(entry.witness.topic),
                    entry.witness.partition,
                    entry.witness.offset,
                ]
                for entry in decision.prepared
            ],
        }
        if decision.override != Override():
            document["decision"]["ruling"] = _of_override(decision.override)
        if decision.spark_run:
            document["decision"]["run"] = decision.spark_run
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
            seq=_whole(document["seq"]),
            decision=_decision(document["decision"]) if "decision" in document else None,
            writer=str(document["writer"]),
            other_streams=_earlier(document.get("earlier", []), document.get("totals")),
            run=_run(document["owner"]) if "owner" in document else None,
            prefix=_text(document.get("prefix", "")),
            stats=read_stats(document["stats"]) if "stats" in document else Stats(),
            settled=document.get("settled") is True,
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise operator_errors.unreadable_record(where, error) from error


def _of_earlier(earlier: OtherStream) -> list[Any]:
    digest = [] if earlier.total is None else _digest(earlier.total)
    return [*digest, earlier.spark_run, earlier.accepted, earlier.dropped]


def _earlier(batches: Any, totals: Any) -> tuple[OtherStream, ...]:
    """Without totals, as older versions wrote it, nothing is known but the batches."""
    if totals is None:
        totals = [["", False, False]] * len(batches)
    found = []
    for (stream, batch), (*digest, spark_run, accepted, dropped) in zip(
        batches, totals, strict=True
    ):
        named, total = BatchId(str(stream), _whole(batch)), _read_digest(digest) if digest else None
        found.append(OtherStream(named, total, _text(spark_run), _truth(accepted), _truth(dropped)))
    return tuple(found)


def encode_moved(names: QueryNames) -> bytes:
    """What lies under the key of older versions, the query without its prefix, once the query has
    a record under its own key: they stop at the format, and neither read a decision that is
    outdated nor begin at number 1."""
    return json.dumps({"format": _MOVED_FORMAT, _MOVED: names.log_key}).encode()


def is_moved(value: bytes) -> bool:
    """Whether a record only says that its query goes on under another key: it counts as none."""
    try:
        document = json.loads(value)
        return bool(document["format"] == _MOVED_FORMAT and _MOVED in document)
    except (ValueError, KeyError, TypeError):
        return False


def _decision(document: Any) -> Decision:
    topics = [str(topic) for topic in document["topics"]]
    return Decision(
        batch=BatchId(str(document["stream"]), _whole(document["batch"])),
        slot=_whole(document["slot"]),
        partitions=_whole(document["partitions"]),
        total=_read_digest(document["total"]),
        prepared=tuple(
            Prepared(
                _whole(partition),
                _whole(producer_id),
                _whole(epoch),
                _read_digest(digest),
                Witness(topics[_whole(topic)], _whole(place), _whole(offset)),
            )
            for partition, producer_id, epoch, *digest, topic, place, offset in document["prepared"]
        ),
        override=_override(document["ruling"]) if "ruling" in document else Override(),
        spark_run=str(document.get("run", "")),
    )


# A version that does not know overrides reads past them and is in doubt as before: it stops, and
# doubles or loses nothing. So the format keeps its number.
def _of_override(override: Override) -> dict[str, Any]:
    return {
        "visible": sorted(override.visible),
        "lost": sorted(override.lost),
        "accepted": override.accepted,
    }


def _override(document: Any) -> Override:
    return Override(
        frozenset(_whole(partition) for partition in document["visible"]),
        frozenset(_whole(partition) for partition in document["lost"]),
        _truth(document["accepted"]),
    )


def _of_run(run: Run) -> dict[str, Any]:
    origin = run.origin
    known = {
        "host": run.host,
        "pid": run.pid,
        "started": run.started_ms,
        "id": origin.eos_id,
        "checkpoint": origin.checkpoint,
        "name": origin.name,
        "batch": origin.batch or None,
        "tool": run.tool,
        "session": run.session,
    }
    return {name: value for name, value in known.items() if value not in (None, "")}


def _run(document: Any) -> Run:
    named = [document.get(name) for name in ("id", "checkpoint", "name")]
    eos_id, checkpoint, name = (None if value is None else str(value) for value in named)
    return Run(
        host=str(document.get("host", "")),
        pid=_whole(document["pid"]),
        started_ms=_whole(document["started"]),
        origin=Origin(eos_id, checkpoint, name, batch=document.get("batch") is True),
        tool=str(document.get("tool", "")),
        session=str(document.get("session", "")),
    )


def _digest(digest: RowDigest) -> list[int]:
    return [digest.rows, digest.bytes, digest.fingerprint]


def _read_digest(values: Any) -> RowDigest:
    rows, size, fingerprint = values
    return RowDigest(_whole(rows), _whole(size), _whole(fingerprint))


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a text")
    return value
