"""Names what makes OAUTHBEARER tokens: a Python library, or a function of the user."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PROVIDER = "eos.oauth.token.provider"
HANDLERS = ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class")
"""Settings that name the Java class of a login."""
MSK, AZURE, GCP = "msk", "azure", "gcp"
AWS_MSK_IAM = "AWS_MSK_IAM"
"""The mechanism of Amazon's Java library. Its brokers take OAUTHBEARER for the same identities."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
# Databricks has the classes in packages of other names. Microsoft's samples and those of Spring
# for Azure each bring a class of their own.
_CLASSES = {
    MSK: r"(\w+\.)?software\.amazon\.msk\.auth\.iam\.IAM(Client|OAuthBearerLogin)CallbackHandler",
    GCP: r"(\w+\.)?com\.google\.cloud\.hosted\.kafka\.auth\.GcpLoginCallbackHandler",
    AZURE: r"([\w.]+\.)?(Custom|KafkaOAuth2)AuthenticateCallbackHandler",
}
_EVENT_HUBS = r"[\w-]+\.servicebus\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"
_MSK_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:on\.aws|amazonaws\.com)")


@dataclass(frozen=True)
class TokenSource:
    """A source of tokens; two equal ones share their tokens.

    Attributes:
        provider: MSK, AZURE, GCP, or "module:function".
        servers: `bootstrap.servers`; tokens of some providers are for these brokers only.
        arguments: names and values from the JAAS entry; may contain secrets.
        extensions: SASL extensions (KIP-342) to send with each token.
    """

    provider: str
    servers: str
    arguments: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def host(self) -> str:
        """The host name of the first broker."""
        return self.servers.split(",")[0].strip().rpartition(":")[0]

    @property
    def event_hubs(self) -> bool:
        return re.fullmatch(_EVENT_HUBS, self.host, re.IGNORECASE) is not None

    @property
    def region(self) -> str | None:
        """The AWS region in the names of the brokers."""
        found = _MSK_REGION.search(self.servers)
        return found[1] if found else None


def is_provider(text: str) -> bool:
    """True if a value of `eos.oauth.token.provider` is well-formed."""
    return text in (MSK, AZURE, GCP) or _FUNCTION.fullmatch(text) is not None


def find_provider(handler: str) -> str | None:
    """The provider that does what a Java class does, or None."""
    for provider, name in _CLASSES.items():
        if re.fullmatch(name, handler.strip().removesuffix(";")):
            return provider
    return None
