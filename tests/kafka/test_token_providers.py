"""Tokens by the cloud providers' own libraries, whose servers are played; and by functions."""

from __future__ import annotations

import base64
import json
import logging
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from eos_sink.errors import ClusterError, ConfigurationError
from eos_sink.kafka.connection.settings import kafka_python_settings, librdkafka_settings
from eos_sink.kafka.connection.token_cache import Token
from eos_sink.kafka.connection.token_providers import _find_credentials, share_tokens
from eos_sink.kafka_config.token_source import TokenSource
from eos_sink.kafka_config.translate import translate
from tests.kafka.token_server import serving

MSK = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098,b-2.demo:9098"
EVENT_HUBS = "orders.servicebus.windows.net:9093"
ROLE = "arn:aws:iam::123456789012:role/writer"
ROLE_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><Credentials><AccessKeyId>AKIAROLE</AccessKeyId>
<SecretAccessKey>canary-role</SecretAccessKey><SessionToken>session</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


class Cloud(HTTPServer):
    """A cloud's endpoint for credentials.

    Attributes:
        answers: by the start of the path.
        asked: paths with queries, and bodies.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: Cloud

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.asked.append((self.path, body))
        found = [a for path, a in self.server.answers.items() if self.path.startswith(path)]
        answer = found[0] if found else ""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_response(200 if found else 404)
        # Google's library accepts metadata with this header only.
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "text/plain" if answer == text else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with serving(Cloud()) as server:
        yield server


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No token of another test, and no credentials of this machine."""
    share_tokens.cache_clear()
    _find_credentials.cache_clear()
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield
    share_tokens.cache_clear()
    _find_credentials.cache_clear()


def get(provider: str, servers: str = "kafka:9093", **arguments: str) -> Token:
    return share_tokens(TokenSource(provider, servers, tuple(arguments.items()))).get()


def signed_url(token: Token) -> Any:
    """The URL in a token of the MSK signer, by parts."""
    text = base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode()
    url = urlsplit(text)
    return url.netloc, {name: values[0] for name, values in parse_qs(url.query).items()}


def test_msk_gets_a_url_signed_for_its_region(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = get("msk", MSK)
    host, query = signed_url(token)
    assert host == "kafka.eu-west-1.amazonaws.com"
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Credential"].startswith("AKIAENV/")
    assert "eu-west-1/kafka-cluster" in query["X-Amz-Credential"]
    assert token.expires - time.time() == pytest.approx(900, abs=60)
    assert "canary" not in caplog.text
    assert query["X-Amz-Signature"] not in caplog.text


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("b-1.d.a.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("msk.example.com:9098", "ap-south-1"),
    ],
)
def test_the_region_is_in_the_brokers_names_else_in_the_environment(
    servers: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert signed_url(get("msk", servers))[0] == f"kafka.{region}.amazonaws.com"


def test_a_region_has_to_come_from_somewhere() -> None:
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        get("msk", "msk.example.com:9098")


def test_msk_gets_a_token_of_a_role(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cloud.answers = {"/": ROLE_ANSWER}
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{cloud.address}")
    token = get("msk", MSK, awsRoleArn=ROLE, awsRoleSessionName="query", awsRoleExternalId="x-1")
    ((_, form),) = cloud.asked
    asked = {name: values[0] for name, values in parse_qs(form).items()}
    assert (asked["RoleArn"], asked["RoleSessionName"], asked["ExternalId"]) == (
        ROLE,
        "query",
        "x-1",
    )
    query = signed_url(token)[1]
    assert query["X-Amz-Credential"].startswith("AKIAROLE/")
    assert query["X-Amz-Security-Token"] == "session"
    assert "canary" not in caplog.text


def test_msk_gets_a_token_of_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file = tmp_path / "credentials"
    file.write_text("[p]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = canary\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    query = signed_url(get("msk", MSK, awsProfileName="p"))[1]
    assert query["X-Amz-Credential"].startswith("AKIAPROFILE/")


def test_a_profile_with_a_role_keeps_its_session_and_so_its_principal(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    cloud.answers = {"/": ROLE_ANSWER}
    file = tmp_path / "config"
    file.write_text(
        f"[profile r]\nrole_arn = {ROLE}\ncredential_source = Environment\nregion = eu-west-1\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{cloud.address}")
    tokens = [get("msk", servers, awsProfileName="r") for servers in (MSK, f"{MSK},b-3:9098")]
    assert all(signed_url(each)[1]["X-Amz-Credential"].startswith("AKIAROLE/") for each in tokens)
    assert len(cloud.asked) == 1


def test_no_credentials_at_all_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match="NoCredentialsError"):
        get("msk", MSK)


def test_credentials_that_are_missing_are_named_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(ClusterError) as error:
        get("msk", MSK, awsProfileName="lacking")
    assert "ProfileNotFound" in str(error.value)
    assert "canary" not in str(error.value)


def test_event_hubs_gets_a_token_of_entra_id(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the managed identity of an Azure App Service, which the library asks over http."""
    caplog.set_level(logging.DEBUG)
    expires = int(time.time()) + 3600
    cloud.answers = {"/": {"access_token": "canary", "expires_on": str(expires), "token_type": "B"}}
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://{cloud.address}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "header")
    assert get("azure", EVENT_HUBS) == Token("canary", expires)
    asked = parse_qs(urlsplit(cloud.asked[-1][0]).query)
    assert asked["resource"] == ["https://orders.servicebus.windows.net"]
    assert "canary" not in caplog.text


def test_managed_kafka_gets_the_access_token_in_a_frame(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the service account of a Google machine."""
    caplog.set_level(logging.DEBUG)
    account = "/computeMetadata/v1/instance/service-accounts/default/"
    cloud.answers = {
        f"{account}token": {"access_token": "canary", "expires_in": 3599, "token_type": "B"},
        account: {"email": "writer@p.iam.gserviceaccount.com", "scopes": ["s"]},
        "/computeMetadata/v1/project/project-id": "p",
        "/computeMetadata/v1/universe": "googleapis.com",
        "/": "",
    }
    monkeypatch.setenv("GCE_METADATA_HOST", cloud.address)
    monkeypatch.setenv("GCE_METADATA_IP", cloud.address)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nonexistent")
    token = get("gcp")
    header, claims, inner = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
        for part in token.value.split(".")
    )
    assert json.loads(header) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    told = json.loads(claims)
    assert (told["sub"], told["scope"]) == ("writer@p.iam.gserviceaccount.com", "kafka")
    assert told["exp"] == token.expires == pytest.approx(time.time() + 3599, abs=400)
    assert inner == "canary"
    assert token.value not in caplog.text


@pytest.mark.parametrize(
    ("provider", "module"),
    [("msk", "aws_msk_iam_sasl_signer"), ("azure", "azure.identity"), ("gcp", "google.auth")],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    provider: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as error:
        get(provider, EVENT_HUBS)
    assert f"eos-sink[{provider}]" in error.value.remedy


class Functions(ModuleType):
    """A module of the user."""

    answer: Any = None

    def make(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Functions:
    module = Functions("their_tokens")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_a_function_makes_tokens_for_both_clients(functions: Functions) -> None:
    functions.answer = ("canary", time.time() + 60, {"identityPoolId": "pool"})
    kafka = {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
        'required extension_logicalCluster="lkc";',
        "sasl.login.callback.handler.class": "com.example.TheirHandler",
        "eos.oauth.token.provider": "their_tokens:make",
    }
    settings = librdkafka_settings(translate(kafka))
    value, _, _, extensions = settings["oauth_cb"]("")
    assert (value, extensions) == ("canary", {"logicalCluster": "lkc", "identityPoolId": "pool"})
    tokens: Any = kafka_python_settings(settings)["sasl_oauth_token_provider"]
    assert tokens.token() == "canary"
    assert tokens.extensions() == extensions
    assert "canary" not in repr(settings) + repr(tokens)


@pytest.mark.parametrize(
    "answer",
    [
        "canary",
        None,
        ("canary",),
        ("canary", "soon"),
        ("canary", 1.0),
        ("canary", time.time() * 1000),
        ("canary", time.time() + 60, {"a-b": "canary"}),
        ("canary", time.time() + 60, "canary"),
        ("canary", time.time() + 60, {}, "canary"),
        ("canary canary", time.time() + 60),
        (b"canary", time.time() + 60),
        ("", time.time() + 60),
    ],
)
def test_a_function_that_returns_no_token_is_an_error(functions: Functions, answer: Any) -> None:
    functions.answer = answer
    with pytest.raises(ConfigurationError) as error:
        get("their_tokens:make")
    assert "canary" not in str(error.value)


def test_what_a_function_raises_is_named_and_not_quoted(functions: Functions) -> None:
    functions.answer = RuntimeError("canary")
    with pytest.raises(ClusterError) as error:
        get("their_tokens:make")
    assert "RuntimeError" in str(error.value)
    assert "canary" not in str(error.value)
    assert error.value.__suppress_context__


@pytest.mark.parametrize(
    "provider", ["not_there:make", "their_tokens:lacking", "their_tokens:answer"]
)
def test_a_function_that_is_not_there_is_an_error(functions: Functions, provider: str) -> None:
    with pytest.raises(ConfigurationError, match=provider):
        get(provider)
