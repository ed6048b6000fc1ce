"""The Java clients' settings for TLS and SASL (Kafka 4's SslConfigs and SaslConfigs)."""

from __future__ import annotations

from eos_sink.kafka_config.setting import Fate, Setting

_NO_CLASS = "No Java class can run here. Remove the option."
_REFRESH = "librdkafka asks for a new token when 80 % of the old one's life is over."
_VALIDATION = "Tokens are checked by the broker."
_BROKER = "It is a setting of the broker."
_KERBEROS = "Kerberos is refused at sasl.mechanism."
_ASSERTION = (
    "Of the ways to get a token only client credentials are known to both Kafka clients. Set "
    "sasl.oauthbearer.client.credentials.client.id and .client.secret."
)
_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_TLS_VERSIONS = (
    "TLS 1.2 and 1.3 are used, the newest that the broker offers. Set ssl.enabled.protocols "
    "there and remove the option here."
)
_STORE = "JKS is refused, with the command that converts it; PEM and PKCS12 are read."

SECURITY_SETTINGS = (
    Setting(
        "sasl.client.callback.handler.class",
        Fate.REFUSED,
        _NO_CLASS,
        accepts=frozenset({""}),
    ),
    Setting(
        "sasl.jaas.config",
        Fate.TRANSLATED,
        "PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule.",
    ),
    Setting("sasl.kerberos.kinit.cmd", Fate.IGNORED, _KERBEROS),
    Setting("sasl.kerberos.min.time.before.relogin", Fate.IGNORED, _KERBEROS),
    Setting("sasl.kerberos.service.name", Fate.IGNORED, _KERBEROS),
    Setting("sasl.kerberos.ticket.renew.jitter", Fate.IGNORED, _KERBEROS),
    Setting("sasl.kerberos.ticket.renew.window.factor", Fate.IGNORED, _KERBEROS),
    Setting(
        "sasl.login.callback.handler.class",
        Fate.REFUSED,
        f"{_NO_CLASS} Kafka's own handler for OAUTHBEARER is accepted: the token comes from "
        "sasl.oauthbearer.token.endpoint.url.",
        accepts=frozenset(
            {
                "",
                f"{_OAUTH}OAuthBearerLoginCallbackHandler".lower(),
                f"{_OAUTH}secured.OAuthBearerLoginCallbackHandler".lower(),
            }
        ),
    ),
    Setting("sasl.login.class", Fate.REFUSED, _NO_CLASS, accepts=frozenset({""})),
    Setting("sasl.login.connect.timeout.ms", Fate.IGNORED, "The clients have bounds of their own."),
    Setting("sasl.login.read.timeout.ms", Fate.IGNORED, "The clients have bounds of their own."),
    Setting("sasl.login.refresh.buffer.seconds", Fate.IGNORED, _REFRESH),
    Setting("sasl.login.refresh.min.period.seconds", Fate.IGNORED, _REFRESH),
    Setting("sasl.login.refresh.window.factor", Fate.IGNORED, _REFRESH),
    Setting("sasl.login.refresh.window.jitter", Fate.IGNORED, _REFRESH),
    Setting("sasl.login.retry.backoff.max.ms", Fate.IGNORED, _REFRESH),
    Setting("sasl.login.retry.backoff.ms", Fate.IGNORED, _REFRESH),
    Setting(
        "sasl.mechanism",
        Fate.SAME,
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; has no default here. GSSAPI "
        "(Kerberos) is refused: one of the two Kafka clients cannot speak it without the "
        "system's Kerberos libraries.",
        takes="plain|scram-sha-256|scram-sha-512|oauthbearer",
    ),
    Setting("sasl.oauthbearer.assertion.algorithm", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.aud", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.exp.seconds", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.iss", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.jti.include", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.nbf.seconds", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.claim.sub", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.file", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.private.key.file", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.private.key.passphrase", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.assertion.template.file", Fate.REFUSED, _ASSERTION),
    Setting("sasl.oauthbearer.client.credentials.client.id", Fate.SAME),
    Setting("sasl.oauthbearer.client.credentials.client.secret", Fate.SAME),
    Setting("sasl.oauthbearer.clock.skew.seconds", Fate.IGNORED, _VALIDATION),
    Setting("sasl.oauthbearer.expected.audience", Fate.IGNORED, _VALIDATION),
    Setting("sasl.oauthbearer.expected.issuer", Fate.IGNORED, _VALIDATION),
    Setting(
        "sasl.oauthbearer.header.urlencode",
        Fate.REFUSED,
        "Client id and secret are sent without this encoding. Remove the option, or choose a "
        "secret that it does not change.",
        accepts=frozenset({"false"}),
    ),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", Fate.IGNORED, _BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Fate.IGNORED, _BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Fate.IGNORED, _BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.url", Fate.IGNORED, _BROKER),
    Setting(
        "sasl.oauthbearer.jwt.retriever.class",
        Fate.REFUSED,
        _ASSERTION,
        accepts=frozenset(
            {
                "",
                f"{_OAUTH}DefaultJwtRetriever".lower(),
                f"{_OAUTH}ClientCredentialsJwtRetriever".lower(),
            }
        ),
    ),
    Setting("sasl.oauthbearer.jwt.validator.class", Fate.IGNORED, _VALIDATION),
    Setting("sasl.oauthbearer.scope", Fate.SAME),
    Setting("sasl.oauthbearer.scope.claim.name", Fate.IGNORED, _VALIDATION),
    Setting("sasl.oauthbearer.sub.claim.name", Fate.SAME),
    Setting(
        "sasl.oauthbearer.token.endpoint.url",
        Fate.SAME,
        "http or https, not file. Its certificate is checked against https.ca.location, else "
        "the system's.",
        takes="https?://.+",
    ),
    Setting("security.protocol", Fate.SAME, "In upper or lower case."),
    Setting("security.providers", Fate.REFUSED, _NO_CLASS, accepts=frozenset({""})),
    Setting(
        "ssl.cipher.suites",
        Fate.SAME,
        "By OpenSSL's names for TLS 1.2, not Java's (openssl ciphers -stdname lists both).",
        takes="[^_]*",
    ),
    Setting(
        "ssl.enabled.protocols",
        Fate.REFUSED,
        f"{_TLS_VERSIONS} Lists with TLSv1.2, such as Java's default, are accepted.",
        accepts=frozenset({""}),
    ),
    Setting(
        "ssl.endpoint.identification.algorithm",
        Fate.SAME,
        "https, or none for Java's empty text.",
        instead={"": "none"},
    ),
    Setting(
        "ssl.engine.factory.class",
        Fate.REFUSED,
        _NO_CLASS,
        accepts=frozenset(
            {"", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory".lower()}
        ),
    ),
    Setting("ssl.key.password", Fate.SAME),
    Setting("ssl.keymanager.algorithm", Fate.IGNORED, "OpenSSL has no such choice."),
    Setting(
        "ssl.keystore.certificate.chain",
        Fate.TRANSLATED,
        "PEM text.",
        librdkafka="ssl.certificate.pem",
    ),
    Setting("ssl.keystore.key", Fate.TRANSLATED, "PEM text.", librdkafka="ssl.key.pem"),
    Setting("ssl.keystore.location", Fate.TRANSLATED, _STORE),
    Setting("ssl.keystore.password", Fate.TRANSLATED, "For a PKCS12 store."),
    Setting("ssl.keystore.type", Fate.TRANSLATED, _STORE),
    Setting(
        "ssl.protocol",
        Fate.IGNORED,
        _TLS_VERSIONS,
        accepts=frozenset({"", "tls", "tlsv1.2", "tlsv1.3"}),
    ),
    Setting("ssl.provider", Fate.REFUSED, _NO_CLASS, accepts=frozenset({""})),
    Setting(
        "ssl.secure.random.implementation",
        Fate.IGNORED,
        "OpenSSL uses the system's random numbers.",
    ),
    Setting("ssl.trustmanager.algorithm", Fate.IGNORED, "OpenSSL has no such choice."),
    Setting("ssl.truststore.certificates", Fate.TRANSLATED, "PEM text.", librdkafka="ssl.ca.pem"),
    Setting("ssl.truststore.location", Fate.TRANSLATED, _STORE),
    Setting("ssl.truststore.password", Fate.TRANSLATED, "For a PKCS12 store."),
    Setting("ssl.truststore.type", Fate.TRANSLATED, _STORE),
)
