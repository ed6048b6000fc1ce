"""JAAS entries are read as Java reads them, and nothing of them is ever shown."""

from __future__ import annotations

import pytest

from eos_sink.kafka_config.jaas import JaasError, read_jaas

COMMON = "org.apache.kafka.common.security"
PLAIN = f"{COMMON}.plain.PlainLoginModule"
SCRAM = f"{COMMON}.scram.ScramLoginModule"
OAUTH = f"{COMMON}.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
CLIENT = "sasl.oauthbearer.client.credentials.client"


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN} required username="ann" password="c;a=n a\\"r\\\\y";',
        f"{PLAIN} required\n  password='c;a=n a\"r\\\\y'\n  username=ann;\n",
        f'kafkashaded.{PLAIN} required username="ann" password="c;a=n a\\"r\\\\y";',
        f'  {SCRAM} required username="ann" password="c;a=n a\\"r\\\\y" tokenauth="false" ; ',
    ],
)
def test_user_and_password_are_read_whatever_is_in_them(text: str) -> None:
    login = read_jaas(text)
    assert login.settings == {"sasl.username": "ann", "sasl.password": 'c;a=n a"r\\y'}
    assert "a=n" not in repr(login)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\tb\nc\rd", "a\tb\nc\rd"),
        (r"\a\b\f\v", "\a\b\f\v"),
        (r"\101\60\7", "A0\a"),
        (r"\4011", "\x2011"),
        (r"\08", "\x008"),
        (r"\q\"\\\'", "q\"\\'"),
    ],
)
def test_an_escape_is_what_java_makes_of_it(written: str, read: str) -> None:
    """java.io.StreamTokenizer, which Kafka's JaasConfig uses."""
    text = f'{PLAIN} required username="a" password="{written}";'
    assert read_jaas(text).settings["sasl.password"] == read


def test_the_module_says_which_mechanisms_it_is_for() -> None:
    entry = ' required username="a" password="b";'
    assert read_jaas(PLAIN + entry).mechanisms == ("PLAIN",)
    assert read_jaas(SCRAM + entry).mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")


def test_client_credentials_and_extensions_are_read() -> None:
    text = (
        f'{OAUTH} required clientId="id" clientSecret="canary" scope="a b" extension_cluster="lkc";'
    )
    assert read_jaas(text).settings == {
        f"{CLIENT}.id": "id",
        f"{CLIENT}.secret": "canary",
        "sasl.oauthbearer.scope": "a b",
        "sasl.oauthbearer.extensions": "cluster=lkc",
    }


def test_of_kerberos_only_the_brokers_name_is_read() -> None:
    text = f"{KERBEROS} required useTicketCache=true renewTGT=true serviceName='broker';"
    login = read_jaas(text)
    assert login.mechanisms == ("GSSAPI",)
    assert login.settings == {"sasl.kerberos.service.name": "broker"}


def test_an_unsigned_token_is_read() -> None:
    text = f'{OAUTH} required unsecuredLoginStringClaim_sub="ann";'
    assert read_jaas(text).settings == {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ann lifeSeconds=3600",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("canary", "semicolon"),
        (f'{PLAIN} required username="ann" password="canary"', "semicolon"),
        (f'{PLAIN} required username="ann" password="canary', "semicolon"),
        (f'{PLAIN} required username="ann" password="can"ary";', "form"),
        (f'{PLAIN} required username="ann" canary;', "form"),
        (f'{PLAIN} required username="canary";', "username and password"),
        (f'{PLAIN} required username="ann" password="x" canary="x";', "other than username"),
        (f'{PLAIN} required a="b"; {PLAIN} required username="canary";', "form"),
        ('com.example.CanaryLoginModule required x="canary";', "PlainLoginModule"),
        (f'{KERBEROS} required useKeyTab=true keyTab="canary";', "KRB5_CLIENT_KTNAME"),
        (f'{KERBEROS} required useTicketCache=true principal="canary";', "KRB5CCNAME"),
        (f'{KERBEROS} required useTicketCache=true canary="x";', "other than serviceName"),
        (f'{SCRAM} required username="canary" password="canary" tokenauth="true";', "JVM"),
        (f'{OAUTH} required unsecuredLoginStringClaim_sub="can ary";', "blanks"),
        (f'{OAUTH} required unsecuredLoginNumberClaim_canary="1";', "other than clientId"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_reported_without_its_value(text: str, said: str) -> None:
    with pytest.raises(JaasError) as error:
        read_jaas(text)
    assert said in str(error.value)
    assert "canary" not in str(error.value).lower()
    assert error.value.__cause__ is None
