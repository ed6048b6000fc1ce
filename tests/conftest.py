"""Speed is never an assertion in a test: Hypothesis does not measure time here."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.protocol.world import World

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def world() -> World:
    """A Kafka in memory, and nothing written yet."""
    return World([])


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal has colours and 60 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
