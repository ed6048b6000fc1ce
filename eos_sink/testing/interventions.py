"""What a test can do to a running cluster beside stopping its nodes, whatever runs the cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import ProducerIdentity
from eos_sink.testing.admin import GROUPS, TRANSACTIONS, Admin
from eos_sink.testing.epochs import LAST_EPOCH, exhaust_epoch
from eos_sink.testing.waiting import wait_until

# For each partition move and each removal; generous, since they come amid other faults.
_USUALLY_S = 60.0


class Interventions(ABC):
    """Moves, removals and exhaustion, through Kafka's own requests; a part of `KafkaCluster`.

    Requests go to brokers that are alive and awake, past the links of a proxied cluster. Every
    method blocks until what it does has taken effect.
    """

    @abstractmethod
    def _addresses(self) -> Sequence[str]:
        """Where to ask: every broker that can answer."""

    def leader_of(self, topic: str, partition: int) -> int:
        """The id of the broker that leads a partition, -1 if none does.

        Raises:
            TestClusterError: there is no such partition, or no broker answers.
        """
        return self._admin().copies(topic, partition).leader

    def active_controller(self) -> int:
        """The id of the controller that leads the others.

        Raises:
            TestClusterError: no broker answers.
        """
        return self._admin().active_controller()

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The id of the broker that coordinates the transactions of this id, -1 if none does.

        Raises:
            TestClusterError: the cluster has had no transaction yet, or no broker answers.
        """
        return self.leader_of(TRANSACTIONS, self._admin().home(TRANSACTIONS, transactional_id))

    def group_coordinator(self, group: str) -> int:
        """The id of the broker that coordinates this consumer group, -1 if none does.

        Raises:
            TestClusterError: the cluster has had no group yet, or no broker answers.
        """
        return self.leader_of(GROUPS, self._admin().home(GROUPS, group))

    def move_leader(
        self, topic: str, partition: int, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker lead a partition; returns when every broker knows it.

        Args:
            topic: the topic.
            partition: its partition.
            to: the id of the new leader, which has a copy; by default the next one in sync.
            timeout_s: how long to try, in seconds.

        Returns:
            The id of the new leader.

        Raises:
            TestClusterError: no such partition, or that broker has no copy.
            NotReadyError: it did not come to it in time, for instance since it is not in sync.
        """
        return self._admin().move(topic, partition, to, Deadline(timeout_s))

    def move_transaction_coordinator(
        self, transactional_id: str, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker coordinate the transactions of this id.

        The new coordinator may still be loading what it has to know; clients wait for that.

        Args, returns and raises: as `move_leader`.
        """
        partition = self._admin().home(TRANSACTIONS, transactional_id)
        return self.move_leader(TRANSACTIONS, partition, to, timeout_s=timeout_s)

    def move_group_coordinator(
        self, group: str, to: int | None = None, *, timeout_s: float = _USUALLY_S
    ) -> int:
        """Let another broker coordinate this consumer group.

        The new coordinator may still be loading what it has to know; clients wait for that.

        Args, returns and raises: as `move_leader`.
        """
        partition = self._admin().home(GROUPS, group)
        return self.move_leader(GROUPS, partition, to, timeout_s=timeout_s)

    def wait_in_sync(self, timeout_s: float = 120) -> None:
        """Wait until every copy of every partition is in sync: the next fault may come.

        Raises:
            NotReadyError: not within `timeout_s` seconds.
        """
        deadline = Deadline(timeout_s)
        wait_until(self._admin().in_sync, deadline, "every copy of every partition is in sync")

    def end_session(self, group: str, instance_id: str) -> None:
        """Remove a static member from its group, as the end of its session does.

        Raises:
            TestClusterError: the group has no such member, or no broker answers.
        """
        self._admin().remove_member(group, instance_id)

    def delete_records(self, topic: str) -> None:
        """Delete every record of a topic, also those of open transactions, as retention does.

        Raises:
            TestClusterError: there is no such topic, or no broker answers.
        """
        self._admin().delete_records(topic)

    def exhaust_epoch(
        self, transactional_id: str, *, left: int = 0, timeout_s: float = 600
    ) -> ProducerIdentity:
        """Bring a transactional id to its last epoch; who inits it next gets a new producer id.

        An open transaction of the id is aborted by that. It takes tens of thousands of requests,
        answered one by one: eight seconds with one broker, two minutes with three.

        Args:
            transactional_id: the id.
            left: how many epochs are not used up.
            timeout_s: how long to go on, in seconds.

        Returns:
            Its producer id and epoch, 32,766 if none is left.

        Raises:
            TestClusterError: the broker refused.
            NotReadyError: not within `timeout_s` seconds.
        """
        addresses = ",".join(self._addresses())
        return exhaust_epoch(addresses, transactional_id, LAST_EPOCH - left, Deadline(timeout_s))

    def _admin(self) -> Admin:
        return Admin(",".join(self._addresses()))
