"""Figures of a query, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from eos_sink.metrics.names import Count, Step
from eos_sink.metrics.stats import Stats, StepTime

numbers = st.integers(0, 2**53)
times = st.builds(lambda took: StepTime(took, 1, took), numbers)
figures = st.builds(
    Stats,
    st.dictionaries(st.sampled_from(Count), numbers),
    st.dictionaries(st.sampled_from(Step), times),
    numbers,
    st.none() | numbers,
    st.none() | numbers,
)
