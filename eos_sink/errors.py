"""The errors of eos-sink: one class for each next action of the reader.

    EosSinkError
    ├── ConfigurationError    change the option or the column that it names
    ├── ClusterError          repair the cluster, the topic or the permission that it names
    ├── BatchFailedError      nothing was decided: start the query again, Spark replays the batch
    │   ├── ProduceFailedError    while the rows were written; `kind` says what failed
    │   └── CommitFailedError     while the batch was put to the vote or decided
    ├── UnfinishedError       decided, not all of it visible yet: start the query again, it is
    │                         finished before anything else
    ├── OutcomeUnknownError   the broker did not answer in time: start the query again, what was
    │                         decided is read back first
    ├── SupersededError       a newer run of the query has taken over: keep that one
    └── OperatorNeededError   the evidence does not allow an automatic answer: compare and choose

Every message says what happened, what it means for the data, and what to do. The two kinds of
BatchFailedError are the two phases of KIP-691: data transmission and commit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, ParamSpec, TypeVar

PAGE = "docs/errors.md"
"""The page with a section for each class: its causes, and what to look at."""
_OPTION = r"\b[Oo]ptions? (kafka\.bootstrap\.servers|kafka|topic|eos[.\w]+|txn\w+|checkpoint\w+)\b"


class Action(Enum):
    """The next action after an error, for programs; the remedy says the same in words.
    Following it loses no row and doubles none."""

    FIX = "fix"
    """Change or repair what the message names, then run the query or the write again."""
    RUN_AGAIN = "run again"
    """Start the query again, or run the write again."""
    LEAVE = "leave"
    """Do not run it again: it is finished, or goes on, without this run."""
    LOOK = "look"
    """Do not run it again before it is known which rows are visible, which the remedy says how to
    find out; then write only those that are not."""
    RESOLVE = "resolve"
    """Do what the remedy says, choose, then run the query or the write again."""


class EosSinkError(Exception):
    """Base of all errors that eos-sink raises; the text ends with a link to its documentation.

    Args:
        message: what happened and what it means for the data.
        remedy: what to do next, a sentence or a command.
        data: facts (batch, partitions, rows, ...), JSON-compatible values only.
        action: the remedy for programs, where it is not the one of the class.
    """

    action: Action
    stop: tuple[Any, dict[str, Any]] | None = None
    """Its row and its facts, if it is one of `eos_sink.messages`."""
    _action: ClassVar[Action] = Action.RUN_AGAIN

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        data: Mapping[str, Any] | None = None,
        action: Action | None = None,
    ) -> None:
        # Imported here: what goes well needs no text.
        from eos_sink.published import as_published

        self.message, self.remedy = as_published(message), as_published(remedy)
        # Keep a command on its line alone.
        end = "\n" if "\n" in remedy else " "
        super().__init__(f"{self.message} {self.remedy}{end}({as_published(self.link())})")
        self.data: dict[str, Any] = dict(data or {})
        self.action = action or self._action

    def link(self) -> str:
        """Return the class's section: a heading's anchor is the heading in lower case."""
        return f"{PAGE}#{type(self).__name__.lower()}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark and multiprocessing pickle exceptions; keyword-only arguments need this.
        return _rebuild, (type(self), self.message, self.remedy, self.data, self.action)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def without_frames(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let an entry point raise its EosSinkErrors without the calls and causes behind them.

    Spark shows the traceback of a Python source several times, mixed with its own: the message,
    which says all that a user needs, would be hard to find. Other errors are defects and keep
    theirs.
    """

    @functools.wraps(function)
    def entry_point(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except EosSinkError as error:
            raise error.with_traceback(None) from None

    return entry_point


def _rebuild(
    kind: type[EosSinkError], message: str, remedy: str, data: dict[str, Any], action: Action
) -> EosSinkError:
    return kind(message, remedy=remedy, data=data, action=action)


class ConfigurationError(EosSinkError):
    """An option, a column or the query's identity is wrong; nothing was written.

    Attributes:
        errors: one for each option, if several are wrong; else empty.
    """

    _action = Action.FIX
    errors: tuple[ConfigurationError, ...] = ()

    def link(self) -> str:
        """Return the place of the first option that the message names, where it names one."""
        named = re.search(_OPTION, self.message)
        return f"docs/options.md#{named[1].lower()}" if named else super().link()


class ClusterError(EosSinkError):
    """Kafka refuses or lacks something: a topic, a permission, a broker that answers; or the
    checkpoint's storage does."""

    _action = Action.FIX


class BatchFailedError(EosSinkError):
    """The batch failed before its decision; its transactions are or will be aborted."""


class FailureKind(Enum):
    """The kind of failure while rows were written (KIP-691, ProduceFailedException.FailureType)."""

    MESSAGE_REJECTED = "message rejected"
    """A record itself: too large, unknown partition. It fails again until that is fixed."""
    DELIVERY_FAILED = "delivery failed"
    """The brokers did not take records in time or in enough copies."""
    TRANSACTION_FAILED = "transaction failed"
    """The transaction or its producer: fenced, timed out, unknown to the broker."""


class ProduceFailedError(BatchFailedError):
    """Rows could not be written (KIP-691, data transmission phase); the task's transaction is
    aborted."""

    @property
    def kind(self) -> FailureKind:
        return FailureKind(self.data["kind"])


class CommitFailedError(BatchFailedError):
    """The batch was written but could not be decided (KIP-691, commit phase, CommitFailed)."""


class UnfinishedError(EosSinkError):
    """The batch is decided but some of its transactions are not committed yet."""


class OutcomeUnknownError(EosSinkError):
    """A deadline passed before Kafka answered how a step ended (KIP-691: never a blind abort)."""


class SupersededError(EosSinkError):
    """A newer run of the same query owns it now (KIP-447: fenced by member or by decision log)."""

    _action = Action.LEAVE


class OperatorNeededError(EosSinkError):
    """The evidence that Kafka still has does not prove exactly-once; an operator has to choose."""

    _action = Action.RESOLVE
