"""Keys whose partition a client could get wrong."""

from __future__ import annotations

import random

_CHANCE = random.Random(7)
KEYS = [
    b"",
    b"\0",
    b"k",
    b"payment-4711",
    "schlüssel".encode(),
    "鍵🔑".encode(),
    bytes(range(256)),
    b"\xff" * 7,
    b"long" * 5_000,
    # Each length modulo four ends the hash in another way.
    *(_CHANCE.randbytes(_CHANCE.randrange(1, 40)) for _ in range(120)),
]
