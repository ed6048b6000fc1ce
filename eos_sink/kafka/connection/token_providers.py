"""Makes OAUTHBEARER tokens with the libraries of cloud providers, or with a function of the user.

Each provider does what a Java class does for Java clients. Sources: aws-msk-iam-auth (README,
MSKCredentialProvider), GcpLoginCallbackHandler of googleapis/managedkafka, and Microsoft's samples
in azure-event-hubs-for-kafka.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from eos_sink.errors import ClusterError, ConfigurationError, EosSinkError
from eos_sink.kafka.connection.token_cache import Token, TokenCache
from eos_sink.kafka_config.token_source import AZURE, GCP, MSK, PROVIDER, TokenSource

_EXTRAS = {
    MSK: ("aws_msk_iam_sasl_signer", "boto3"),
    AZURE: ("azure.identity",),
    GCP: ("google.auth", "urllib3"),
}
"""The modules that each provider needs, which the extra of its name installs."""
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LONGEST_REASON = 300
# An expiry in milliseconds, as in Java, would be tens of thousands of years away.
_LONGEST_LIFE_S = 10 * 365 * 86_400
_AWS_LOG = threading.Lock()
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


@cache
def share_tokens(source: TokenSource) -> TokenCache:
    """The tokens of a source, for all clients of this process.

    Raises:
        ConfigurationError: a library or the function cannot be imported; says what to do.
    """
    if source.provider in _EXTRAS:
        for module in _EXTRAS[source.provider]:
            _check_library(module, source.provider)
        fetch = partial(_FETCH[source.provider], source)
    else:
        fetch = partial(_call_function, _load_function(source.provider))
    return TokenCache(partial(_fetch, source, fetch))


def _fetch(source: TokenSource, fetch: Callable[[], Token]) -> Token:
    """Raises ClusterError or ConfigurationError without secrets."""
    try:
        token = fetch()
    except EosSinkError:
        raise
    except Exception as error:  # noqa: BLE001 - a library or a user's function may raise anything
        what = type(error).__name__
        if source.provider in _EXTRAS:
            # The libraries keep secrets out of their errors; a user's function may not.
            what = f"{what}: {' '.join(str(error).split())[:_LONGEST_REASON]}"
        raise ClusterError(
            f"The token provider {source.provider} makes no token for OAUTHBEARER: {what}.",
            remedy="Check the credentials of this machine, or the function of option "
            f"{PROVIDER}. Driver and executors each make their own tokens. Nothing was written.",
        ) from None
    return Token(token.value, token.expires, {**dict(source.extensions), **token.extensions})


def _check_library(module: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as missing:
        raise ConfigurationError(
            f"The login needs the Python package of module {module}, which cannot be imported "
            f"here ({missing}).",
            remedy=f"pip install 'eos-sink[{extra}]', on the driver and on every executor. "
            "Nothing was written.",
        ) from missing


def _load_function(provider: str) -> Callable[[], Any]:
    module, _, name = provider.partition(":")
    found: Any
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001 - a module may raise anything when it is loaded
        raise ConfigurationError(
            f"Option {PROVIDER} names {provider}, which cannot be imported here: "
            f"{type(error).__name__}.",
            remedy="Install the module on the driver and on every executor, or send it along "
            "(spark-submit --py-files). Nothing was written.",
        ) from None
    if not callable(found):
        raise ConfigurationError(
            f"Option {PROVIDER} names {provider}, which is no function.",
            remedy="Name a function without arguments. Nothing was written.",
        )
    function: Callable[[], Any] = found
    return function


def _call_function(function: Callable[[], Any]) -> Token:
    answer = function()
    try:
        value, expires, *more = answer
        given = dict(more[0]) if more and more[0] else {}
        extensions = {str(name): str(text) for name, text in given.items()}
        expires = float(expires)
    except (TypeError, ValueError):
        raise _unusable("other than (token, expiry) or (token, expiry, extensions)") from None
    if len(more) > 1 or not isinstance(value, str) or not _PRINTABLE.fullmatch(value):
        raise _unusable("a token that is not one line of ASCII text")
    # The same rules as in librdkafka (check_oauthbearer_extension_key).
    if not all(re.fullmatch("[A-Za-z]+", str(name)) for name in extensions):
        raise _unusable("an extension whose name is not letters")
    life = expires - time.time()
    if not 0 < life < _LONGEST_LIFE_S:
        raise _unusable(f"an expiry {life:.0f} s from now, not seconds since the epoch ahead")
    return Token(value, expires, extensions)


def _unusable(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"The function of option {PROVIDER} returns {what}.",
        remedy="Return (token, expiry in seconds since the epoch) or (token, expiry, extensions). "
        "Nothing was written.",
    )


def _fetch_msk(source: TokenSource) -> Token:
    """A signed URL, good for 15 minutes (aws-msk-iam-sasl-signer-python); made without network if
    the credentials are there."""
    region = source.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise ConfigurationError(
            f"The AWS region of the brokers is unknown: {source.host} does not contain it.",
            remedy="Set the environment variable AWS_REGION on the driver and on every executor "
            "(spark.executorEnv.AWS_REGION). Nothing was written.",
        )
    given = dict(source.arguments)
    with _quiet_aws():
        if "awsRoleArn" in given:
            credentials = _assume_role(given, region)
        else:
            credentials = _find_credentials(given.get("awsProfileName")).get_frozen_credentials()
        value, expires_ms = _sign(region, credentials)
    return Token(value, expires_ms / 1000)


def _sign(region: str, credentials: Any) -> tuple[str, float]:
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    from botocore.credentials import CredentialProvider

    class Given(CredentialProvider):  # type: ignore[misc]
        def load(self) -> Any:
            return credentials

    signed: tuple[str, float] = Signer.generate_auth_token_from_credentials_provider(
        region, Given()
    )
    return signed


@cache
def _find_credentials(profile: str | None) -> Any:
    """Credentials that renew themselves. MSK refuses to renew a login under another principal, and
    each look-up of a role would make a session of another name."""
    import botocore.session
    from botocore.exceptions import NoCredentialsError

    found = botocore.session.Session(profile=profile).get_credentials()
    if found is None:
        raise NoCredentialsError
    return found


@contextmanager
def _quiet_aws() -> Iterator[None]:
    """At level DEBUG botocore logs signatures, and the keys of a role."""
    logger = logging.getLogger("botocore")
    with _AWS_LOG:
        level = logger.level
        logger.setLevel(max(logger.getEffectiveLevel(), logging.INFO))
        try:
            yield
        finally:
            logger.setLevel(level)


def _assume_role(given: Mapping[str, str], region: str) -> Any:
    """The credentials of a role, with the options that the signer's own function lacks."""
    import boto3
    from botocore.credentials import Credentials

    client = boto3.client(
        "sts",
        region_name=given.get("awsStsRegion", region),
        aws_access_key_id=given.get("awsRoleAccessKeyId"),
        aws_secret_access_key=given.get("awsRoleSecretAccessKey"),
        aws_session_token=given.get("awsRoleSessionToken"),
    )
    asked = {
        "RoleArn": given["awsRoleArn"],
        # Always the same, see `_find_credentials`.
        "RoleSessionName": given.get("awsRoleSessionName", "eos-sink"),
    }
    if "awsRoleExternalId" in given:
        asked["ExternalId"] = given["awsRoleExternalId"]
    answer = client.assume_role(**asked)["Credentials"]
    return Credentials(
        *(answer[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
    )


def _fetch_azure(source: TokenSource) -> Token:
    """A token of Microsoft Entra ID for an Event Hubs namespace."""
    from azure.identity import DefaultAzureCredential

    with DefaultAzureCredential() as credential:
        answer = credential.get_token(f"https://{source.host}/.default")
    return Token(answer.token, float(answer.expires_on))


def _fetch_gcp(_: TokenSource) -> Token:
    """The access token of the application's default credentials, in a frame of its own."""
    from datetime import timezone

    import google.auth
    import urllib3
    from google.auth.transport.urllib3 import Request

    credentials, _project = google.auth.default(scopes=[_GOOGLE_SCOPE])
    credentials.refresh(Request(urllib3.PoolManager()))
    account = getattr(credentials, "service_account_email", None)
    if not account:
        raise ConfigurationError(
            f"The Google credentials of this machine ({type(credentials).__name__}) belong to no "
            "service account, which Managed Kafka's login needs.",
            remedy="Use a service account: of the machine, by GOOGLE_APPLICATION_CREDENTIALS, or "
            "gcloud auth application-default login --impersonate-service-account=ACCOUNT. "
            "Nothing was written.",
        )
    expires = credentials.expiry.replace(tzinfo=timezone.utc).timestamp()
    claims = {"exp": expires, "iat": time.time(), "iss": "Google", "scope": "kafka", "sub": account}
    header = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    parts = (json.dumps(header), json.dumps(claims), credentials.token)
    encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return Token(".".join(encoded), expires)


_FETCH = {MSK: _fetch_msk, AZURE: _fetch_azure, GCP: _fetch_gcp}
