"""What a look at one thing has shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from eos_sink.kafka.interfaces import Unseen
from eos_sink.ops.doctor.commands import Commands


class Level(Enum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNSEEN = "not seen"


class Check(Enum):
    """What is looked at, and what for. docs/doctor.md shows it."""

    BROKERS = "brokers", "each broker can be reached from here at the address that it advertises"
    VERSIONS = (
        "versions",
        "each broker knows the requests that the sink sends; versions of features",
    )
    CONTROLLER = "controller", "the controllers have a leader"
    CLOCK = "clock", "this machine's clock and the cluster's agree"
    PERMISSIONS = "permissions", "this principal may do all that the query needs"
    TOPIC = (
        "topic",
        (
            "each topic exists; its partitions have leaders and enough copies in sync; it takes "
            "the query's records and times"
        ),
    )
    WITNESS = "reading back", "what a crash leaves open can be read back from the topics for long"
    INTERNAL = "internal topics", "`__transaction_state` and `__consumer_offsets` survive a broker"
    LOG = "decision log", "it is as the sink makes it, or can be made"
    RECORDS = "log records", "each record of the decision log can be read, and lies in its place"
    TIMEOUT = "transaction time-out", "the brokers allow it; recent batches stay well below it"
    SESSION = (
        "group session",
        "the brokers allow the driver's, at least a minute longer than a transaction",
    )
    EXPIRY = "expiry", "ids of transactions and producers are remembered for long enough"
    VERIFICATION = "verification", "brokers refuse rows of transactions that they do not know of"
    NAMES = "names", "no other application uses the query's names; no two queries are one"
    OPTIONS = "options", "settings of the query that are passed over or unwise"
    CLIENTS = "clients", "versions of Python and of the libraries here; the fast path is there"
    FORMAT = "format", "with `--spark`: Spark finds the format `kafka-eos`"
    EXECUTORS = (
        "executors",
        ("with `--spark`: Python, libraries and brokers as executors see them, the same as here"),
    )
    SPARK = (
        "Spark settings",
        "with `--spark`: settings that the sink cannot, or need not, live with",
    )

    def __init__(self, title: str, meaning: str) -> None:
        self.title = title
        self.meaning = meaning


@dataclass(frozen=True)
class Finding:
    """One line.

    Attributes:
        what: what was found, half a sentence or more, with the name of the thing.
        meaning: what that means for the query and its data; empty where all is well.
        remedy: commands, or sentences where there is no command.
    """

    check: Check
    level: Level
    what: str
    meaning: str = ""
    remedy: tuple[str, ...] = ()


Findings = Iterator[Finding]


def ok(check: Check, what: str) -> Finding:
    return Finding(check, Level.OK, what)


def warning(check: Check, what: str, meaning: str, *remedy: str) -> Finding:
    return Finding(check, Level.WARNING, what, meaning, remedy)


def failure(check: Check, what: str, meaning: str, *remedy: str) -> Finding:
    return Finding(check, Level.FAILURE, what, meaning, remedy)


def unseen(check: Check, what: str, why: Unseen, commands: Commands) -> Finding:
    """`what` could not be seen."""
    remedy = tuple(commands.grants(why.missing)) if why.missing else ()
    return Finding(check, Level.UNSEEN, f"{what}: {why.why}", "", remedy)
