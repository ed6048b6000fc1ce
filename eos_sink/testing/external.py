"""A cluster that is already there."""

from __future__ import annotations

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import probe
from eos_sink.testing.errors import BackendUnavailableError, NodeControlError
from eos_sink.testing.interface import KafkaCluster, KafkaNode
from eos_sink.testing.waiting import wait_until

_ANSWERS_WITHIN_S = 15.0


class ExternalCluster(KafkaCluster):
    """The cluster at these addresses; closing it changes nothing there.

    Args:
        bootstrap_servers: "host:port[,host:port...]".

    Raises:
        BackendUnavailableError: no address is given.
        NotReadyError: no broker answered within 15 seconds.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        if not bootstrap_servers:
            raise BackendUnavailableError(
                "The external back end needs EOS_BOOTSTRAP=host:port[,host:port...]."
            )
        self.bootstrap_servers = bootstrap_servers
        self.version = "unknown"
        self.nodes = ()
        self.cluster_id = ""
        deadline = Deadline(_ANSWERS_WITHIN_S)
        wait_until(
            lambda: self._answers(deadline),
            deadline,
            f"a broker at EOS_BOOTSTRAP={bootstrap_servers} answers",
        )

    def _answers(self, deadline: Deadline) -> bool:
        view = probe.view_of(self.bootstrap_servers, deadline)
        if view is None:
            return False
        self.cluster_id = view.cluster_id
        return True

    def node(self, node_id: int) -> KafkaNode:
        """Always an error: what was not started here is not controlled from here.

        Raises:
            NodeControlError: always.
        """
        raise NodeControlError(
            f"Node {node_id} of {self.bootstrap_servers} cannot be controlled: the cluster was "
            "given by EOS_BOOTSTRAP. Unset it to get a cluster whose nodes can be killed."
        )

    def close(self) -> None:
        """Nothing to do."""
