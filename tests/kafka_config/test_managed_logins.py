"""The logins of managed clusters, written as their guides write them for Spark's Java clients."""

from __future__ import annotations

import pytest

from eos_sink.errors import ConfigurationError
from eos_sink.kafka_config.check_setting import check_setting
from eos_sink.kafka_config.java_settings import Handling
from eos_sink.kafka_config.token_source import PROVIDER, TokenSource
from eos_sink.kafka_config.translate import translate
from eos_sink.options import parse_options

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LOGIN_CLASS, CLIENT_CLASS = (
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
)
KAFKAS_HANDLER = (
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
)
MSK = "b-1.demo.abc123.c2.kafka.us-east-1.amazonaws.com:9098"
EVENT_HUBS = "orders.servicebus.windows.net:9093"
SASL = {"security.protocol": "SASL_SSL"}
# README of aws-msk-iam-auth, and its guides for Databricks.
IAM = {
    **SASL,
    "bootstrap.servers": MSK,
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    CLIENT_CLASS: "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
IAM_BEARER_CLASS = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
BEARER = {**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{OAUTH};"}
GCP = {
    **BEARER,
    "bootstrap.servers": "bootstrap.c.us-central1.managedkafka.p.cloud.goog:9092",
    LOGIN_CLASS: "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
}
AZURE = {
    **BEARER,
    "bootstrap.servers": EVENT_HUBS,
    LOGIN_CLASS: "CustomAuthenticateCallbackHandler",
}


def source_of(kafka: dict[str, str]) -> TokenSource:
    translation = translate(kafka)
    assert translation.warnings == ()
    assert translation.tokens is not None
    assert translation.settings["sasl.mechanism"] == "OAUTHBEARER"
    assert not any("class" in name or "jaas" in name for name in translation.settings)
    return translation.tokens


def refused(kafka: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as error:
        translate(kafka)
    return str(error.value)


def shaded(kafka: dict[str, str]) -> dict[str, str]:
    prefix = "shadedmskiam.software"
    return {name: value.replace("software", prefix) for name, value in kafka.items()}


@pytest.mark.parametrize(
    "kafka",
    [
        IAM,
        shaded(IAM),
        {**IAM, "sasl.mechanism": "aws_msk_iam"},
        {
            **BEARER,
            "bootstrap.servers": MSK,
            LOGIN_CLASS: IAM_BEARER_CLASS,
            CLIENT_CLASS: IAM_BEARER_CLASS,
        },
    ],
)
def test_amazon_msk_with_iam(kafka: dict[str, str]) -> None:
    source = source_of(kafka)
    assert (source.provider, source.region, source.arguments) == ("msk", "us-east-1", ())


def test_the_iam_identity_is_in_the_entry_and_is_not_shown() -> None:
    entry = (
        'software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/r" '
        'awsRoleSessionName="producer" awsStsRegion="us-west-2" awsDebugCreds=true '
        'awsRoleAccessKeyId="AKIA" awsRoleSecretAccessKey="canary";'
    )
    source = source_of({**IAM, "sasl.jaas.config": entry})
    assert dict(source.arguments) == {
        "awsRoleArn": "arn:aws:iam::1:role/r",
        "awsRoleSessionName": "producer",
        "awsStsRegion": "us-west-2",
        "awsRoleAccessKeyId": "AKIA",
        "awsRoleSecretAccessKey": "canary",
    }
    assert "canary" not in repr(source) + repr(translate({**IAM, "sasl.jaas.config": entry}))


@pytest.mark.parametrize("option", ['awsMskRegionProvider="canary"', 'username="canary"'])
def test_an_iam_option_that_cannot_be_honoured_is_refused(option: str) -> None:
    entry = f"software.amazon.msk.auth.iam.IAMLoginModule required {option};"
    message = refused({**IAM, "sasl.jaas.config": entry})
    assert "kafka.sasl.jaas.config" in message
    assert "canary" not in message


def test_managed_kafka_of_google() -> None:
    assert source_of(GCP).provider == "gcp"


@pytest.mark.parametrize(
    "handler",
    [
        "CustomAuthenticateCallbackHandler",
        "CustomAuthenticateCallbackHandler;",
        "com.azure.spring.cloud.service.implementation.kafka.KafkaOAuth2AuthenticateCallbackHandler",
    ],
)
def test_event_hubs_with_entra_id(handler: str) -> None:
    source = source_of({**AZURE, LOGIN_CLASS: handler})
    assert (source.provider, source.host) == ("azure", "orders.servicebus.windows.net")


def test_a_class_of_that_name_elsewhere_is_not_microsofts() -> None:
    assert PROVIDER in refused({**AZURE, "bootstrap.servers": "kafka:9093"})


def test_event_hubs_with_a_connection_string() -> None:
    string = (
        "Endpoint=sb://orders.servicebus.windows.net/;SharedAccessKeyName=w;SharedAccessKey=a+b/c="
    )
    entry = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="$ConnectionString" password="{string}";'
    )
    kafka = {**SASL, "bootstrap.servers": EVENT_HUBS, "sasl.mechanism": "PLAIN"}
    for prefix in ("", "kafkashaded."):
        translation = translate({**kafka, "sasl.jaas.config": prefix + entry})
        assert translation.settings["sasl.username"] == "$ConnectionString"
        assert translation.settings["sasl.password"] == string
        assert translation.tokens is None


def test_event_hubs_with_a_service_principal_as_on_databricks() -> None:
    entry = (
        f"kafkashaded.{OAUTH} clientId='id' clientSecret='word' "
        "scope='https://orders.servicebus.windows.net/.default' ssl.protocol='SSL';"
    )
    url = "https://login.microsoftonline.com/tenant/oauth2/v2.0/token"
    translation = translate(
        {
            **BEARER,
            "bootstrap.servers": EVENT_HUBS,
            "sasl.jaas.config": entry,
            "sasl.oauthbearer.token.endpoint.url": url,
            LOGIN_CLASS: f"kafkashaded.{KAFKAS_HANDLER}",
        }
    )
    assert translation.warnings == ()
    assert translation.tokens is None
    assert translation.settings["sasl.oauthbearer.method"] == "oidc"
    assert translation.settings["sasl.oauthbearer.scope"].endswith("/.default")


def test_confluent_cloud_with_an_identity_pool() -> None:
    entry = (
        f"{OAUTH} clientId='id' clientSecret='word' scope='s' extension_logicalCluster='lkc-1' "
        "extension_identityPoolId='pool-1';"
    )
    translation = translate(
        {
            **BEARER,
            "bootstrap.servers": "pkc-1.eu-west-1.aws.confluent.cloud:9092",
            "sasl.jaas.config": entry,
            "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
            LOGIN_CLASS: KAFKAS_HANDLER,
        }
    )
    assert translation.settings["sasl.oauthbearer.extensions"] == (
        "logicalCluster=lkc-1,identityPoolId=pool-1"
    )


def test_the_option_names_a_provider_in_place_of_any_java_class() -> None:
    own = {**BEARER, "bootstrap.servers": "kafka:9093", LOGIN_CLASS: "com.example.Handler"}
    assert PROVIDER in refused(own)
    entry = f"{OAUTH} extension_logicalCluster='lkc-1';"
    source = source_of({**own, "sasl.jaas.config": entry, PROVIDER: "their.tokens:make"})
    assert source.provider == "their.tokens:make"
    assert source.extensions == (("logicalCluster", "lkc-1"),)


def test_the_option_travels_with_the_settings_of_the_clients() -> None:
    options = parse_options(
        {
            **{f"kafka.{name}": value for name, value in GCP.items() if name != LOGIN_CLASS},
            "eos.id": "q",
            "Eos.OAuth.Token.Provider": "gcp",
        }
    )
    tokens = options.cluster.client.tokens
    assert tokens is not None
    assert tokens.provider == "gcp"


@pytest.mark.parametrize("provider", ["aws", "module", "module:", ":function", "a b:c", "m:f()"])
def test_a_malformed_provider_is_refused(provider: str) -> None:
    assert PROVIDER in refused({**BEARER, PROVIDER: provider})


def test_tokens_come_from_one_source() -> None:
    url = {"sasl.oauthbearer.token.endpoint.url": "https://login/token"}
    assert "two sources" in refused({**GCP, **url})


def test_a_provider_is_for_tokens() -> None:
    login = {**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b"}
    assert "OAUTHBEARER" in refused({**login, PROVIDER: "gcp"})


def test_a_provider_is_ignored_without_sasl() -> None:
    translation = translate({PROVIDER: "gcp"})
    assert translation.tokens is None
    assert len(translation.warnings) == 1


def test_the_classes_are_translated_one_by_one_too() -> None:
    for kafka in (IAM, GCP, AZURE):
        for name in (LOGIN_CLASS, CLIENT_CLASS):
            if name in kafka:
                checked = check_setting(name, kafka[name])
                assert checked.handling is Handling.TRANSLATED
                assert f"eos-sink[{source_of(kafka).provider}]" in checked.note
