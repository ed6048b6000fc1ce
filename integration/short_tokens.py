"""A token provider whose tokens live for seconds: the option names its function."""

from __future__ import annotations

import time

from eos_sink.kafka.connection.oauth import make_unsigned_token

# A refresh takes librdkafka up to a second, and it logs in again when 90 % of a token's life are
# over. Half of this life is enough for both.
LIFE_S = 24.0
made: list[str] = []
"""All tokens of this process."""


def make() -> tuple[str, float]:
    """An unsigned token for ann, which the test's broker accepts."""
    now = time.time()
    token, life = make_unsigned_token(
        {"sasl.oauthbearer.config": f"principal=ann lifeSeconds={LIFE_S}"}, now
    )
    made.append(token)
    return token, now + life
