"""A part of a page that is written from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.result import Result, Spread

PERFORMANCE_PAGE, RESULTS_PAGE = "docs/performance.md", "bench/results/README.md"

Results = Mapping[str, Result]
"""By name."""


@dataclass(frozen=True)
class Publication:
    """The text between two marks of a page, and its plots.

    Attributes:
        name: of the marks.
        page: a file, from the root of the repository.
        of: the results that it is about; it is left as it is while none of them is there.
        lines: the Markdown from those results that are there.
        plots: file names in docs/bench/ and what draws each, as SVG.
    """

    name: str
    page: str
    of: tuple[str, ...]
    lines: Callable[[Results], Iterator[str]]
    plots: Mapping[str, Callable[[Results], str]] = field(default_factory=dict)

    @property
    def marks(self) -> tuple[str, str]:
        return f"<!-- {self.name}: python -m bench.publish -->", f"<!-- end of {self.name} -->"

    def written_into(self, page: str, results: Results) -> str:
        """The page with the results between the marks.

        Raises:
            ValueError: the page lacks a mark.
        """
        return replace_between(page, *self.marks, self.lines(results))


def replace_between(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The page with these lines between its two marks.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, rest = page.split(begin)
    _, after = rest.split(end)
    text = "\n".join(lines).strip("\n")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with the first column left-aligned, the others right; an empty line follows."""
    yield f"| {' | '.join(head)} |"
    yield f"|---{'|--:' * (len(head) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def number(value: float) -> str:
    """Format with three significant digits and thousands separators."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread_text(found: Spread) -> str:
    """The median and the range of nine of ten samples."""
    return f"{number(found.median)} ({number(found.p5)} to {number(found.p95)})"


def measured_on(result: Result) -> str:
    """Date, machine and versions as a sentence."""
    machine, versions = result.machine, result.machine["versions"]
    return (
        f"{result.date.replace('T', ' ').replace('Z', ' UTC')}, {machine['cores']} cores "
        f"({machine['processor']}) and {machine['memory_gb']} GB for everything, the broker "
        f"included. Kafka {versions['kafka']}, Spark {versions.get('pyspark', 'none')}, Java "
        f"{machine['java']}, Python {machine['python']}, librdkafka {versions['librdkafka']}, "
        f"kafka-python {versions['kafka-python']}, pyarrow {versions['pyarrow']}."
    )
