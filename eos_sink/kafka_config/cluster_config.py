"""Has how clients reach a cluster, and what the sink has there: values without rules, for tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eos_sink.identity import DEFAULT_LOG, DEFAULT_PREFIX

# Few clusters need tokens of a provider.
if TYPE_CHECKING:
    from eos_sink.kafka_config.token_source import TokenSource


@dataclass(frozen=True)
class Store:
    """A key store or trust store, to be read where it is used.

    Attributes:
        option: its name in error messages, without `kafka.` in front.
        private: it holds a key and its certificates; else the certificates to trust.
        location: path on every machine that runs the sink.
        kind: the value of `ssl.*store.type` in upper case; "": the file's content decides.
        password: of a PKCS12 store.
    """

    option: str
    private: bool
    location: str
    kind: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Translation:
    """A user's settings for librdkafka.

    Attributes:
        settings: by librdkafka's names; may contain secrets, so not part of repr.
        stores: to read as well, if the clients use TLS.
        warnings: sentences for the log, without secrets.
        tokens: where the tokens come from, if librdkafka does not fetch them itself.
    """

    settings: Mapping[str, str] = field(repr=False)
    stores: tuple[Store, ...] = ()
    warnings: tuple[str, ...] = ()
    tokens: TokenSource | None = None


@dataclass(frozen=True)
class ClusterConfig:
    """All that a client has to know of a cluster; the same for all queries.

    Attributes:
        client: the user's settings.
        log_topic: the decision log.
        prefix: of the queries' transactional ids and groups.
        log_replication: replication factor of the decision log if the sink creates it.
        native: whether rows may go from Arrow's buffers straight to librdkafka.
        driver_batch_bytes: the largest record batch of several records in a driver's transaction.
    """

    client: Translation
    log_topic: str = DEFAULT_LOG
    prefix: str = DEFAULT_PREFIX
    log_replication: int = 3
    native: bool = True
    driver_batch_bytes: int = 1

    @property
    def servers(self) -> str:
        """The brokers to connect to first."""
        return self.client.settings["bootstrap.servers"]


def cap_timeouts(settings: Mapping[str, str], transaction_timeout_ms: int) -> dict[str, str]:
    """The timeouts to lower for a producer: librdkafka refuses any above its transaction's."""
    return {
        name: str(transaction_timeout_ms)
        for name in ("delivery.timeout.ms", "socket.timeout.ms")
        if int(settings.get(name, 0)) > transaction_timeout_ms
    }
