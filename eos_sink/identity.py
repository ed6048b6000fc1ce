"""The identity of a query, and its names in Kafka.

The same type builds and parses a name, so that a list of transactional ids is read by the rule that
made them.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from dataclasses import dataclass

from eos_sink.errors import ConfigurationError

DEFAULT_PREFIX = "eos-sink-"
DEFAULT_LOG = "__eos_sink_log"
"""The decision log's topic."""
SESSION_PREFIX = "spark.datasource.kafka-eos."
"""Session settings with this prefix are defaults of options."""

QUERY_NAME = re.compile(r"[A-Za-z0-9._]+-[0-9a-f]{10}")
"""A query's whole name, as `query_identity` makes it."""

_SHOWN = re.compile(rf"(.*?)({QUERY_NAME.pattern})", re.DOTALL)
_READABLE_LIMIT = 48
_UNREADABLE = re.compile(r"[^A-Za-z0-9._]+")
_ABSOLUTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:/|/)")
_LOCATION = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)(?=/))?)?(/.*)", re.DOTALL)
_TASK_SUFFIX = re.compile(r"([01])-(0|[1-9][0-9]*)")
_QUERY_PART = re.compile(r"[?#].*", re.DOTALL)
# A SAS token may also come after a semicolon.
_TOKEN_PART = re.compile(r"(://[^;]*);.*=.*", re.DOTALL)
_USER_PART = re.compile(r"(?<=://)[^/]*@")
# A slip, or a slash in the secret, makes it no URL. What is like host:port/ stays.
_STRAY_USER_PART = re.compile(r"(^|/)[^/:?#@]+:(?!/|\d*/)[^?#]*@")
# Azure's file systems have the container there, which is no secret and part of the place.
_CONTAINER = re.compile(r"(abfs|wasb)s?://[a-z0-9$-]+@", re.IGNORECASE)


@dataclass(frozen=True)
class TaskId:
    """Slot and partition in a task's transactional id."""

    slot: int
    partition: int


@dataclass(frozen=True)
class QueryNames:
    """Every name that one query uses in Kafka.

    Attributes:
        prefix: the start of all names; one prefixed ACL covers them.
        query: the stable identity of the query under that prefix.
    """

    prefix: str
    query: str

    @staticmethod
    def of_record(key: str, prefix: str) -> QueryNames:
        """The names by a record's key and prefix.

        Args:
            key: `log_key`, or `shown`.
        """
        query = key.removeprefix(prefix)
        is_new = query != key and QUERY_NAME.fullmatch(query)
        return QueryNames(prefix, query if is_new else key)

    @staticmethod
    def of_shown(shown: str) -> QueryNames | None:
        """The inverse of `shown`; None: not a name of the sink."""
        match = _SHOWN.fullmatch(shown)
        return QueryNames(match[1] or DEFAULT_PREFIX, match[2]) if match else None

    @property
    def shown(self) -> str:
        """Unique in a log: the same query name may exist under two prefixes."""
        return self.query if self.prefix == DEFAULT_PREFIX else self.group

    @property
    def group(self) -> str:
        """The consumer group whose one static member is the query's planner (KIP-447)."""
        return f"{self.prefix}{self.query}"

    @property
    def log_key(self) -> str:
        """The key of its records in the decision log. It has to be the identity that fences:
        two drivers that do not fence each other would overwrite each other's decisions under one
        key."""
        return self.group

    @property
    def driver(self) -> str:
        """The driver's transactional id and its group instance id."""
        return f"{self.group}-driver"

    @property
    def start(self) -> str:
        """The transactional id of `starting_offsets`, which writes to the log as well."""
        return f"{self.group}-start"

    @property
    def probe(self) -> str:
        """Has no transactions: what the brokers allow the query's ids is tried with it."""
        return f"{self.group}-permission"

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
    """The start of a query, as far as a sink knows it. Written to Kafka.

    Attributes:
        eos_id: the option `eos.id`.
        checkpoint: the checkpoint location, without possible secrets.
        name: the query name.
        batch: batch writes instead of a query.
        topic: the option `topic` of batch writes, whose identity has it.
    """

    eos_id: str | None = None
    checkpoint: str | None = None
    name: str | None = None
    batch: bool = False
    topic: str | None = None

    def __str__(self) -> str:
        named = {
            "eos.id": self.eos_id,
            "checkpoint": self.checkpoint,
            "query name": self.name,
            "topic": self.topic,
        }
        known = [f"{what} {value!r}" for what, value in named.items() if value]
        kind = ["batch write"] if self.batch else []
        return ", ".join(kind + known) or "no name"

    def contradicts(self, other: Origin) -> bool:
        """True: certainly two queries. False: one may be a restart of the other."""
        pairs = zip(
            (self.eos_id, self.checkpoint, self.name),
            (other.eos_id, other.checkpoint, other.name),
            strict=True,
        )
        return any(mine and theirs and mine != theirs for mine, theirs in pairs)


def query_origin(
    explicit: str | None, checkpoint_location: str | None, query_name: str | None
) -> Origin:
    """From the arguments of `query_identity`, without what a reader of the log must not see."""
    location = checkpoint_location
    if location:
        location = normalised_location(shown_location(location))
    return Origin(explicit or None, location or None, query_name or None)


def query_identity(
    explicit: str | None, checkpoint_location: str | None, query_name: str | None
) -> str:
    """The stable identity of a query: `eos.id`, else the checkpoint location, else its name.

    Args:
        explicit: the option `eos.id`.
        checkpoint_location: the option `checkpointLocation` as Spark passes it.
        query_name: the name given with `queryName(...)`.

    Returns:
        A readable part and a hash of the whole source, which makes it unique.

    Raises:
        ConfigurationError: none of them is set, or the checkpoint location is relative.
    """
    if explicit:
        return _identity("id", explicit, explicit)
    if checkpoint_location:
        if not _ABSOLUTE.match(checkpoint_location):
            raise ConfigurationError(
                f"The checkpoint location {shown_location(checkpoint_location)!r} is relative, so "
                "it means another query in another working directory.",
                remedy="Give an absolute checkpointLocation, or name the query with option "
                "eos.id. Nothing was written.",
            )
        path = normalised_location(checkpoint_location)
        readable = shown_location(path).rstrip("/").rsplit("/", 1)[-1]
        return _identity("checkpoint", path, readable)
    if query_name:
        return _identity("name", query_name, query_name)
    raise ConfigurationError(
        "The query has no identity: neither option eos.id, nor option checkpointLocation, nor a "
        "query name is set on the writer (a session-wide default checkpoint directory is not "
        "visible to a sink). Without one a restart could not be distinguished from another query.",
        remedy="Set .option('eos.id', '<a name that stays the same across restarts>') or "
        ".option('checkpointLocation', '<absolute path>'). Nothing was written.",
    )


def batch_identity(explicit: str | None, app: str | None, topic: str | None) -> str:
    """The identity of batch writes, from those of these three that are given; never a stream's.

    Several writes share it, so that a later one finishes what an earlier one has left, and the
    number of transactional ids stays bounded. All writes without any of the three share one.

    Args:
        explicit: the option `eos.id`.
        app: the option `txnAppId`.
        topic: the option `topic`.
    """
    given = [explicit, app, topic]
    readable = "_".join(part for part in given if part)
    return _identity("batch", json.dumps(given), readable or "batch")


def shown_location(location: str) -> str:
    """A checkpoint location without what may be secret, also one that is misspelt."""
    return _STRAY_USER_PART.sub(r"\1", _without_secrets(location))


def _without_secrets(location: str) -> str:
    """s3a://key:secret@bucket/path, ...?sig=secret and ...;sig=secret may contain credentials."""
    location = _TOKEN_PART.sub(r"\1", _QUERY_PART.sub("", location))
    return location if _CONTAINER.match(location) else _USER_PART.sub("", location)


def normalised_location(location: str) -> str:
    """One spelling for a directory, as in Hadoop's Path: `file:///x`, `file:/x/` and `/x` are the
    same, and so are `hdfs:/x` and `HDFS:///./x`. A relative location stays as it is."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        return location
    scheme, host, path = (match[1] or "").lower(), match[2] or "", match[3]
    path = posixpath.normpath(re.sub(r"/{2,}", "/", path))
    if scheme in ("", "file") and host in ("", "localhost"):
        return path
    return f"{scheme}://{host}{path}"


def _identity(kind: str, source: str, readable: str) -> str:
    digest = hashlib.sha256(f"{kind}:{source}".encode()).hexdigest()[:10]
    name = _UNREADABLE.sub("_", readable).strip("_")[:_READABLE_LIMIT] or kind
    return f"{name}-{digest}"
