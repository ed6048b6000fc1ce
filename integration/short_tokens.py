"""A token provider whose tokens live for seconds: the option names its function."""

from __future__ import annotations

import os
import time

from eos_sink.kafka.connection.oauth import make_unsigned_token

# A refresh takes librdkafka up to a second, and it logs in again when 90 % of a token's life are
# over. Half of this life is enough for both.
LIFE_S = 24.0
USER_VARIABLE = "EOS_TOKEN_USER"
made: list[str] = []
"""All tokens of this process."""


def make() -> tuple[str, float]:
    """An unsigned token, which the test's broker accepts."""
    now = time.time()
    user = os.environ.get(USER_VARIABLE, "ann")
    token, life = make_unsigned_token(
        {"sasl.oauthbearer.config": f"principal={user} lifeSeconds={LIFE_S}"}, now
    )
    made.append(token)
    return token, now + life
