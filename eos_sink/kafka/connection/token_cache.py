"""Keeps a token for half of its life; one cache serves all clients of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eos_sink.kafka.error_codes import LOGGER

# librdkafka looks once a second whether 80 % of what its token had left is over. A client that is
# made later has to get a token that lasts.
_USED_PART = 0.5


@dataclass(frozen=True)
class Token:
    """A token of OAUTHBEARER.

    Attributes:
        value: what the broker gets; a secret.
        expires: seconds since the epoch.
        extensions: SASL extensions (KIP-342).
    """

    value: str = field(repr=False)
    expires: float
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class TokenCache:
    """Returns a token, and fetches the next one before it expires.

    confluent-kafka takes it as its `oauth_cb`; `oauth.Tokens` gives it to kafka-python.

    Args:
        fetch: makes a token; its errors contain no secret.
        clock: seconds since the epoch.
    """

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.time) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._fetch_at = float("-inf")

    def __repr__(self) -> str:
        return "TokenCache()"

    def get(self) -> Token:
        """The token. Blocks while the next one is fetched; raises what `fetch` raises, unless the
        last token is still good."""
        with self._lock:
            if self._token is None or self._clock() >= self._fetch_at:
                self._token = self._fetch_next(self._token)
                now = self._clock()
                self._fetch_at = now + (self._token.expires - now) * _USED_PART
            return self._token

    def __call__(self, _config: str = "") -> tuple[str, float, str, dict[str, str]]:
        """For confluent-kafka: token, expiry, principal (which no broker looks at), extensions."""
        try:
            token = self.get()
        except Exception as error:
            # confluent-kafka reports only that there was an error.
            LOGGER.error("There is no new token for OAUTHBEARER: %s", error)
            raise
        return token.value, token.expires, "", dict(token.extensions)

    def _fetch_next(self, last: Token | None) -> Token:
        try:
            return self._fetch()
        except Exception as error:
            if last is None or last.expires <= self._clock():
                raise
            LOGGER.warning("There is no new token yet; the last one is still good: %s", error)
            return last
