"""A token is fetched in time, shared, and never shown."""

from __future__ import annotations

import logging

import pytest

from eos_sink.errors import ClusterError
from eos_sink.kafka.connection.token_cache import Token, TokenCache
from tests.fakes.clock import FakeClock

LIFE_S = 100


class Provider:
    """Makes canary-1, canary-2, ... or fails."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.made = 0
        self.fails = False

    def __call__(self) -> Token:
        if self.fails:
            raise ClusterError("no token", remedy="Log in.")
        self.made += 1
        return Token(f"canary-{self.made}", self._clock() + LIFE_S, {"cluster": "lkc"})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def provider(clock: FakeClock) -> Provider:
    return Provider(clock)


@pytest.fixture
def tokens(provider: Provider, clock: FakeClock) -> TokenCache:
    return TokenCache(provider, clock)


def test_a_token_is_fetched_again_when_half_of_its_life_is_over(
    tokens: TokenCache, provider: Provider, clock: FakeClock
) -> None:
    assert {tokens.get().value for _ in range(3)} == {"canary-1"}
    clock.advance(LIFE_S / 2 - 1)
    assert tokens.get().value == "canary-1"
    clock.advance(2)
    assert tokens.get().value == "canary-2"
    assert provider.made == 2


def test_a_token_is_used_to_its_end_while_there_is_no_other(
    tokens: TokenCache, provider: Provider, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    tokens.get()
    provider.fails = True
    clock.advance(LIFE_S - 1)
    assert tokens.get().value == "canary-1"
    assert "no token" in caplog.text
    clock.advance(1)
    with pytest.raises(ClusterError):
        tokens.get()
    provider.fails = False
    assert tokens.get().value == "canary-2"


def test_confluent_kafka_gets_what_its_callback_returns(
    tokens: TokenCache, clock: FakeClock
) -> None:
    assert tokens("") == ("canary-1", clock() + LIFE_S, "", {"cluster": "lkc"})


def test_confluent_kafka_does_not_say_why_there_is_no_token_so_the_log_does(
    tokens: TokenCache, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.fails = True
    with pytest.raises(ClusterError):
        tokens("")
    assert "no token" in caplog.text


def test_no_token_is_logged_or_shown(tokens: TokenCache, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert "canary" not in repr(tokens) + repr(tokens.get()) + caplog.text
