"""Errors of test clusters, one class per remedy.

TestClusterError
├── BackendUnavailableError   install what the message lists, or choose another back end
│   └── JavaNotFoundError     install Java 17 or newer, or the demo extra
├── DownloadError             repair the network, the mirror or the cache, then call again
├── NodeFailedError           read the node's log, whose last lines the message carries
├── NodeControlError          this cluster's nodes cannot be controlled from here
└── NotReadyError             a condition did not hold before the deadline
"""

from __future__ import annotations

from collections.abc import Sequence


class TestClusterError(Exception):
    """Base of every error that a test cluster raises on purpose."""

    __test__ = False  # pytest would collect the name


class BackendUnavailableError(TestClusterError):
    """This machine cannot run Kafka as requested."""


class JavaNotFoundError(BackendUnavailableError):
    """There is no Java runtime that is new enough; the message lists where it looked."""


class DownloadError(TestClusterError):
    """Jars could not be downloaded."""


class NodeControlError(TestClusterError):
    """The node cannot be controlled: it is not ours, or in the wrong state."""


class NotReadyError(TestClusterError):
    """A condition did not hold before its deadline."""


class NodeFailedError(TestClusterError):
    """A node ended by itself.

    Args:
        name: which node.
        exit_code: what its process returned (negative: the signal that ended it).
        log_tail: the last lines of its log.
    """

    def __init__(self, name: str, exit_code: int | None, log_tail: Sequence[str]) -> None:
        lines = "\n  ".join(log_tail) or "(nothing was logged)"
        super().__init__(
            f"Kafka node {name} ended with code {exit_code}. Last lines of its log:\n  {lines}"
        )
        self.exit_code = exit_code
        self.log_tail = tuple(log_tail)
