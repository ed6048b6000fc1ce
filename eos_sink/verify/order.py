"""Whether rows come in order along each key, within each partition."""

from __future__ import annotations

from typing import Any

MOST_KEYS = 2_000_000
_EXAMPLES = 20


class Order:
    """Remembers the latest of each key, of the first `MOST_KEYS` keys.

    Attributes:
        wrong: rows that are older than an earlier one of their key.
        silent: rows that have nothing to be ordered by.
        unfollowed: rows of keys beyond those that are remembered.
        examples: of the wrong ones: partition, offset, key, what it has, what came before.
    """

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._room = most_keys
        self._latest: dict[int, dict[Any, Any]] = {}
        self.wrong = self.silent = self.unfollowed = 0
        self.examples: list[tuple[int, int, bytes | str | None, Any, Any]] = []

    def add(self, partition: int, offset: int, key: bytes | str | None, place: Any) -> None:
        """Take in a row; `place` is what it is ordered by."""
        if place is None:
            self.silent += 1
            return
        latest = self._latest.setdefault(partition, {})
        if key not in latest:
            if self._room:
                self._room -= 1
                latest[key] = place
            else:
                self.unfollowed += 1
            return
        before = latest[key]
        if isinstance(place, str) is not isinstance(before, str):
            self.silent += 1
        elif place < before:
            self.wrong += 1
            if len(self.examples) < _EXAMPLES:
                self.examples.append((partition, offset, key, place, before))
        else:
            latest[key] = place

    @property
    def keys_in_several(self) -> int:
        """Keys that are in more than one partition, where no order holds between them."""
        keys = [set(latest) for latest in self._latest.values()]
        return sum(map(len, keys)) - len(set().union(*keys))
