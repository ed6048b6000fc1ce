"""kafka-python's tokens: asked for in time, kept while they are good, never shown."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.errors import SaslAuthenticationFailedError

from eos_sink.kafka.connection import oauth
from eos_sink.kafka.connection.oauth import Tokens
from eos_sink_lab.testing.security import Authority
from tests.fakes.clock import FakeClock
from tests.kafka.token_server import TokenServer, serving


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with serving(TokenServer()) as server:
        yield server


def test_a_token_is_asked_for_by_client_credentials(server: TokenServer) -> None:
    tokens = Tokens(server.settings(sasl_oauthbearer_scope="read write"))
    assert tokens.token() == "token-1"
    expected = "Basic " + base64.b64encode(b"id:canary").decode()
    assert server.asked == [(expected, "grant_type=client_credentials&scope=read+write")]


def test_a_token_is_kept_for_half_of_its_life(server: TokenServer) -> None:
    clock = FakeClock()
    tokens = Tokens(server.settings(), clock)
    assert tokens.token() == "token-1"
    clock.advance(49)
    assert tokens.token() == "token-1"
    clock.advance(2)
    assert tokens.token() == "token-2"


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, b'{"error": "canary"}', "answers 401"),
        (302, None, "answers 302"),
        (200, b"canary", "without a token"),
        (200, b'["canary"]', "without a token"),
        (200, b'{"access_token": 1, "canary": 1}', "without a token"),
        (200, b'{"access_token": "x", "expires_in": "canary"}', "without a token"),
    ],
)
def test_a_missing_token_is_reported_without_secrets(
    server: TokenServer, status: int, answer: bytes | None, said: str
) -> None:
    server.status, server.answer = status, answer
    with pytest.raises(SaslAuthenticationFailedError) as error:
        Tokens(server.settings()).token()
    assert said in str(error.value)
    assert "canary" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert len(server.asked) == 1


def test_a_server_that_does_not_answer_is_not_waited_for_long(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "_ATTEMPT_S", 0.05)
    server.shutdown()
    with pytest.raises(SaslAuthenticationFailedError, match="reached"):
        Tokens(server.settings()).token()


def test_nothing_of_it_is_logged_or_shown(
    server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = Tokens(server.settings())
    tokens.token()
    assert "token-1" not in caplog.text + repr(tokens)
    assert "canary" not in caplog.text + repr(tokens)


def test_the_servers_certificate_is_checked(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with serving(TokenServer(authority.identity("login"))) as server:
        with pytest.raises(SaslAuthenticationFailedError, match="reached"):
            Tokens(server.settings()).token()
        trusting = {**server.settings(), "https.ca.location": str(authority.ca)}
        assert Tokens(trusting).token() == "token-1"


def test_an_unsigned_token_names_its_subject() -> None:
    claims = "principal=ann scope=a,b lifeSeconds=60 extension_cluster=lkc"
    tokens = Tokens({"sasl.oauthbearer.config": claims, "sasl.oauthbearer.extensions": "x=y"})
    header, payload, signature = tokens.token().split(".")
    assert signature == ""
    told = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert told["sub"] == "ann"
    assert told["scope"] == ["a", "b"]
    assert told["exp"] - told["iat"] == pytest.approx(60)
    assert tokens.extensions() == {"x": "y", "cluster": "lkc"}
