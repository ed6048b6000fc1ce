"""Speed is never an assertion in a test: Hypothesis does not measure time here."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
