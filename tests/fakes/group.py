"""The group coordinator, as far as one static member needs it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from eos_sink.protocol.values import MemberRefused, MemberState, Offsets, Place
from tests.fakes.clock import FakeClock

POLL_INTERVAL_MS = 86_400_000
"""A client ends its heartbeats by itself when nothing has called it for this long."""


@dataclass
class Membership:
    """One stay of a member in a group; a newer one takes its place."""

    group: str
    generation: int
    session_ms: int
    called_ms: int
    """When its process last called it."""
    silent_since_ms: int | None = None
    """When its process ended or let go of it; None while neither has happened."""

    @property
    def heard_ms(self) -> int:
        """Until when the client has sent heartbeats, or will without another call."""
        by_itself = self.called_ms + POLL_INTERVAL_MS
        return by_itself if self.silent_since_ms is None else min(self.silent_since_ms, by_itself)

    @property
    def metadata(self) -> bytes:
        return f"{self.group}|{self.generation}".encode()


class Groups:
    """Each group's live member and committed offset."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._members: dict[str, Membership | None] = {}
        self._offsets: dict[str, int] = {}
        self.committed: dict[str, dict[Place, int]] = {}
        """The offsets of other groups than the queries', which have no members."""
        self._generations = count(1)
        clock.listen(self.expire)

    def join(self, group: str, session_ms: int) -> Membership:
        """A static member replaces the one before it at once."""
        membership = Membership(group, next(self._generations), session_ms, self._clock.ms)
        self._members[group] = membership
        return membership

    def state(self, membership: Membership) -> MemberState:
        current = self._members.get(membership.group)
        if current is membership:
            membership.called_ms = self._clock.ms
            return MemberState.CURRENT
        return MemberState.EXPIRED if current is None else MemberState.REPLACED

    def check(self, metadata: bytes) -> str:
        """The group that live metadata speaks for (TxnOffsetCommit)."""
        group = metadata.decode().rpartition("|")[0]
        current = self._members.get(group)
        if current is None or current.metadata != metadata:
            raise MemberRefused(
                f"{metadata.decode()} is not the live member of its group",
                replaced=current is not None,
            )
        return group

    def expire(self) -> None:
        for member in list(self._members.values()):
            if member is not None and member.heard_ms + member.session_ms <= self._clock.ms:
                self.end_session(member.group)

    def end_session(self, group: str) -> None:
        """The session of the live member ends, without the wait."""
        self._members[group] = None

    def names(self) -> list[str]:
        return sorted(self._members)

    def has_member(self, group: str) -> bool:
        return self._members.get(group) is not None

    def commit(self, group: str, offset: int) -> None:
        self._offsets[group] = offset

    def commit_offsets(self, group: str, offsets: Offsets) -> None:
        self.committed.setdefault(group, {}).update(offsets)

    def offset(self, group: str) -> int | None:
        return self._offsets.get(group)
