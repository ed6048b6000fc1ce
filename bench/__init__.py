"""Measurements beside peers; nothing here is an assertion."""

from pathlib import Path

RESULTS = Path(__file__).parent / "results"
