"""Who a query is, and the names in Kafka that follow from it.

A name is built and parsed by the same type, so that whatever lists transactional ids judges them
by the rule that made them.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

SLOTS = (0, 1)
DEFAULT_PREFIX = "eos-sink-"
DEFAULT_LOG = "__eos_sink_log"
"""The decision log's topic."""

QUERY_NAME = re.compile(r"[A-Za-z0-9._]+-[0-9a-f]{10}")
"""A query's whole name, as `query_identity` makes it."""

_SHOWN = re.compile(rf"(.*?)({QUERY_NAME.pattern})", re.DOTALL)
_READABLE_LIMIT = 48
_UNREADABLE = re.compile(r"[^A-Za-z0-9._]+")
_ABSOLUTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:/|/)")
_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)(?=/))?)?(/.*)", re.DOTALL)
_TASK_SUFFIX = re.compile(r"([01])-(0|[1-9][0-9]*)")
_QUERY_PART = re.compile(r"[?#].*", re.DOTALL)
_USER_PART = re.compile(r"(?<=://)[^/]*@")


@dataclass(frozen=True)
class TaskId:
    """The slot and the partition that a task's transactional id carries."""

    slot: int
    partition: int


@dataclass(frozen=True)
class QueryNames:
    """Every name that one query uses in Kafka.

    Attributes:
        prefix: what all names start with; one prefixed ACL covers them.
        query: the sink's stable identity of the query under that prefix.
    """

    prefix: str
    query: str

    @staticmethod
    def of_record(key: str, prefix: str) -> QueryNames:
        """The names that a record's key and its prefix tell.

        Args:
            key: `log_key`; or the query alone, as it is shown or as older versions wrote it.
            prefix: as the record has it, "" in the oldest ones.
        """
        prefix = prefix or DEFAULT_PREFIX
        query = key.removeprefix(prefix)
        is_new = query != key and QUERY_NAME.fullmatch(query)
        return QueryNames(prefix, query if is_new else key)

    @staticmethod
    def of_shown(shown: str) -> QueryNames | None:
        """The names that are shown like this; None: nothing of the sink is."""
        match = _SHOWN.fullmatch(shown)
        return QueryNames(match[1] or DEFAULT_PREFIX, match[2]) if match else None

    @property
    def shown(self) -> str:
        """Tells it from all others of a log: two prefixes may have one query's name."""
        return self.query if self.prefix == DEFAULT_PREFIX else self.group

    @property
    def group(self) -> str:
        """The consumer group whose one static member is the query's planner (KIP-447)."""
        return f"{self.prefix}{self.query}"

    @property
    def log_key(self) -> str:
        """The key of its records in the decision log. It has to be the identity that fences: two
        drivers that never fence each other would overwrite each other's decisions under one key."""
        return self.group

    @property
    def driver(self) -> str:
        """The driver's transactional id and its group instance id."""
        return f"{self.group}-driver"

    def task(self, slot: int, partition: int) -> str:
        """The transactional id of a task. Two slots keep the ids bounded: a broker remembers
        an id for 7 days (`transactional.id.expiration.ms`)."""
        return f"{self.group}-{slot}-{partition}"

    def parse_task(self, transactional_id: str) -> TaskId | None:
        """The task that an id of this query names, or None for anything else."""
        if not transactional_id.startswith(f"{self.group}-"):
            return None
        match = _TASK_SUFFIX.fullmatch(transactional_id[len(self.group) + 1 :])
        return TaskId(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True)
class Origin:
    """What tells one query's start from another's, as far as a sink is told; written to Kafka.

    Attributes:
        eos_id: the option `eos.id`.
        checkpoint: the checkpoint location without what may be a secret.
        name: the query name.
        batch: it is no query, but batch writes.
    """

    eos_id: str | None = None
    checkpoint: str | None = None
    name: str | None = None
    batch: bool = False

    def __str__(self) -> str:
        named = {"eos.id": self.eos_id, "checkpoint": self.checkpoint, "query name": self.name}
        known = [f"{what} {value!r}" for what, value in named.items() if value]
        kind = ["batch write"] if self.batch else []
        return ", ".join(kind + known) or "no name"

    def contradicts(self, other: Origin) -> bool:
        """The two are surely two queries. If not, one may be a restart of the other."""
        pairs = zip(
            (self.eos_id, self.checkpoint, self.name),
            (other.eos_id, other.checkpoint, other.name),
            strict=True,
        )
        return any(mine and theirs and mine != theirs for mine, theirs in pairs)


def query_origin(
    explicit: str | None, checkpoint_location: str | None, query_name: str | None
) -> Origin:
    """The same three as for `query_identity`, fit to be shown to anybody who may read the log."""
    location = checkpoint_location
    if location:
        # s3a://key:secret@bucket/path and ...?sig=secret carry what is nobody's business.
        location = _USER_PART.sub("", _QUERY_PART.sub("", location))
        location = _normalised(location) if _ABSOLUTE.match(location) else location
    return Origin(explicit or None, location or None, query_name or None)


def query_identity(
    explicit: str | None, checkpoint_location: str | None, query_name: str | None
) -> str:
    """The stable identity of a query: `eos.id`, else the checkpoint location, else its name.

    Args:
        explicit: the option `eos.id`.
        checkpoint_location: the option `checkpointLocation` as Spark hands it over.
        query_name: the name given with `queryName(...)`.

    Returns:
        A readable part and a hash of the whole source, so that two sources never share it.

    Raises:
        ConfigurationError: none of them is set, or the checkpoint location is relative.
    """
    if explicit:
        return _identity("id", explicit, explicit)
    if checkpoint_location:
        if not _ABSOLUTE.match(checkpoint_location):
            raise ConfigurationError(
                f"The checkpoint location {checkpoint_location!r} is relative, so it means another "
                "query in another working directory.",
                remedy="Give an absolute checkpointLocation, or name the query with option "
                "eos.id. Nothing was written.",
            )
        path = _normalised(checkpoint_location)
        readable = _QUERY_PART.sub("", path).rstrip("/").rsplit("/", 1)[-1]
        return _identity("checkpoint", path, readable)
    if query_name:
        return _identity("name", query_name, query_name)
    raise ConfigurationError(
        "The query has no identity: neither option eos.id, nor option checkpointLocation, nor a "
        "query name is set on the writer (a session-wide default checkpoint directory is not "
        "visible to a sink). Without one a restart could not be told from another query.",
        remedy="Set .option('eos.id', '<a name that stays the same across restarts>') or "
        ".option('checkpointLocation', '<absolute path>'). Nothing was written.",
    )


def batch_identity(explicit: str | None, app: str | None, topic: str | None) -> str:
    """The identity of batch writes: what of these three is given, and never a stream's.

    It is not unique to one write, so that a later write finishes what an earlier one has left, and
    the number of transactional ids stays bounded. Where nothing is given all such writes share it.

    Args:
        explicit: the option `eos.id`.
        app: the option `txnAppId`.
        topic: the option `topic`.
    """
    given = [explicit, app, topic]
    readable = "_".join(part for part in given if part)
    return _identity("batch", json.dumps(given), readable or "batch")


def _normalised(location: str) -> str:
    """One spelling of a directory, as Hadoop's Path sees it: `file:///x`, `file:/x/` and `/x` are
    one, and so are `hdfs:/x` and `HDFS:///./x`."""
    match = _LOCATION.fullmatch(location)
    assert match is not None
    scheme, host, path = (match[1] or "").lower(), match[2] or "", match[3]
    path = posixpath.normpath(re.sub(r"/{2,}", "/", path))
    if scheme in ("", "file") and host in ("", "localhost"):
        return path
    return f"{scheme}://{host}{path}"


def _identity(kind: str, source: str, readable: str) -> str:
    digest = hashlib.sha256(f"{kind}:{source}".encode()).hexdigest()[:10]
    name = _UNREADABLE.sub("_", readable).strip("_")[:_READABLE_LIMIT] or kind
    return f"{name}-{digest}"
