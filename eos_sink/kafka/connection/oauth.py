"""Tokens for kafka-python's OAUTHBEARER: of a provider, a token server (KIP-768), or unsigned.

librdkafka itself fetches tokens from a server, with the same settings. kafka-python has no such
code.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from eos_sink.errors import EosSinkError
from eos_sink.kafka.connection.tls import make_token_context
from eos_sink.kafka.connection.token_cache import Token, TokenCache

_ATTEMPT_S = 10.0
_SHORTEST_LIFE_S = 60.0
_LARGEST_ANSWER = 1024 * 1024
_CLIENT = "sasl.oauthbearer.client.credentials.client"


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Gives tokens to kafka-python.

    Args:
        settings: librdkafka's, with a `TokenCache` as `oauth_cb`, the URL of a token server, or the
            claims of an unsigned token.
        clock: seconds since the epoch.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._settings = settings
        self._clock = clock
        self._url = settings.get("sasl.oauthbearer.token.endpoint.url")
        secure = self._url is not None and self._url.lower().startswith("https:")
        self._context = make_token_context(settings) if secure else None
        self._cache = settings.get("oauth_cb") or TokenCache(self._fetch, clock)

    def __repr__(self) -> str:
        return "Tokens()"

    def token(self) -> str:
        """Called by kafka-python at each login, and before a connection's session ends (KIP-368).
        A token server has ten seconds to answer.

        Raises:
            SaslAuthenticationFailedError: there is no token; without secrets.
        """
        return self._get().value

    def extensions(self) -> dict[str, str]:
        """SASL extensions (KIP-342)."""
        return dict(self._get().extensions)

    def _get(self) -> Token:
        try:
            token: Token = self._cache.get()
        except EosSinkError as error:
            raise SaslAuthenticationFailedError(error.message) from None
        return token

    def _fetch(self) -> Token:
        pairs = self._settings.get("sasl.oauthbearer.extensions", "").split(",")
        extensions = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        now = self._clock()
        if self._url is None:
            claims = _claims(self._settings)
            value, life = make_unsigned_token(self._settings, now)
            extensions |= {
                name.removeprefix("extension_"): text
                for name, text in claims.items()
                if name.startswith("extension_")
            }
        else:
            value, life = _fetch_token(self._url, self._settings, self._context)
        return Token(value, now + life, extensions)


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
    except (OSError, http.client.HTTPException) as failed:
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
