"""Benchmarks against other sinks; they assert nothing."""

from pathlib import Path

RESULTS = Path(__file__).parent / "results"
