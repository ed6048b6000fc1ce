"""Tokens for kafka-python's OAUTHBEARER (KIP-768): from a token server, or unsigned for tests.

librdkafka fetches its own tokens with the same settings. kafka-python has no such code.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from eos_sink.kafka.connection.tls import make_token_context

_ATTEMPT_S = 10.0
# librdkafka fetches the next token after this part of a token's life.
_USED_PART = 0.8
_SHORTEST_LIFE_S = 60.0
_LARGEST_ANSWER = 1024 * 1024
_CLIENT = "sasl.oauthbearer.client.credentials.client"


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Returns a token, and keeps it for most of its life.

    Args:
        settings: librdkafka's, with the URL of a token server or the claims of an unsigned token.
        clock: monotonic seconds.
    """

    def __init__(
        self, settings: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._settings = settings
        self._clock = clock
        self._url = settings.get("sasl.oauthbearer.token.endpoint.url")
        secure = self._url is not None and self._url.lower().startswith("https:")
        self._context = make_token_context(settings) if secure else None
        self._lock = threading.Lock()
        self._token = ""
        self._good_until = float("-inf")

    def __repr__(self) -> str:
        return "Tokens()"

    def token(self) -> str:
        """Called by kafka-python at each login; takes ten seconds at most.

        Raises:
            SaslAuthenticationFailedError: there is no token; without secrets.
        """
        with self._lock:
            if self._clock() >= self._good_until:
                if self._url is None:
                    self._token, life = make_unsigned_token(self._settings, time.time())
                else:
                    self._token, life = _fetch_token(self._url, self._settings, self._context)
                self._good_until = self._clock() + life * _USED_PART
            return self._token

    def extensions(self) -> dict[str, str]:
        """SASL extensions (KIP-342), "name=value,...", or those of an unsigned token."""
        pairs = self._settings.get("sasl.oauthbearer.extensions", "").split(",")
        named = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if self._url is None:
            for name, value in _claims(self._settings).items():
                if name.startswith("extension_"):
                    named[name.removeprefix("extension_")] = value
        return named


def make_unsigned_token(settings: Mapping[str, str], now: float) -> tuple[str, float]:
    """An unsigned token, as librdkafka makes it from `sasl.oauthbearer.config`.

    Returns:
        The token and its life in seconds.
    """
    claims = _claims(settings)
    life = float(claims.get("lifeSeconds", "3600"))
    payload: dict[str, Any] = {
        claims.get("principalClaimName", "sub"): claims.get("principal", ""),
        "iat": now,
        "exp": now + life,
    }
    if claims.get("scope"):
        payload[claims.get("scopeClaimName", "scope")] = claims["scope"].split(",")
    parts = ({"alg": "none"}, payload)
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    return ".".join(part.decode() for part in encoded) + ".", life


def _claims(settings: Mapping[str, str]) -> dict[str, str]:
    words = settings.get("sasl.oauthbearer.config", "").split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def _fetch_token(
    url: str, settings: Mapping[str, str], context: ssl.SSLContext | None
) -> tuple[str, float]:
    """With client credentials (RFC 6749, section 4.4)."""
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    login = f"{settings[f'{_CLIENT}.id']}:{settings[f'{_CLIENT}.secret']}"
    request = urllib.request.Request(
        url,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": "Basic " + base64.b64encode(login.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    try:
        # A redirect would send the secret to another server.
        opener = urllib.request.build_opener(
            _NoRedirect(), *([urllib.request.HTTPSHandler(context=context)] if context else [])
        )
        with opener.open(request, timeout=_ATTEMPT_S) as answer:
            document = json.loads(answer.read(_LARGEST_ANSWER))
        token = document["access_token"]
        life = float(document.get("expires_in", _SHORTEST_LIFE_S))
    except urllib.error.HTTPError as refused:
        raise _no_token(f"answers {refused.code}") from None
    except OSError as failed:
        reason = getattr(failed, "reason", failed)
        raise _no_token(f"cannot be reached ({type(reason).__name__})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _no_token("answers without a token") from None
    if not isinstance(token, str) or not token:
        raise _no_token("answers without a token")
    return token, life


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _no_token(what: str) -> SaslAuthenticationFailedError:
    return SaslAuthenticationFailedError(
        f"The token server (kafka.sasl.oauthbearer.token.endpoint.url) {what}"
    )
