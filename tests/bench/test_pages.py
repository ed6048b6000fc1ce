"""The pages say what the results say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.pages.cost import COST
from bench.pages.end_to_end import NAME as END_TO_END
from bench.pages.end_to_end import OURS, THEIRS
from bench.pages.price import PRICE
from bench.pages.publication import Publication, Results, number, spread_text, table
from bench.publish import PLOTS, PUBLICATIONS, ROOT, results_of
from bench.result import Result, Series, Spread

DAY = "2026-01-31T12:00Z"
NOTHING = Result("x", DAY, {}, {})


def name(publication: Publication) -> str:
    return publication.name


@pytest.mark.parametrize("publication", PUBLICATIONS, ids=name)
def test_a_page_says_what_the_results_say(publication: Publication) -> None:
    page = (ROOT / publication.page).read_text()
    results = results_of(publication)
    if not results:
        pytest.skip(f"bench/results has none of {publication.of}")
    assert publication.written_into(page, results) == page, "python -m bench.publish"
    for file in publication.plots:
        assert (PLOTS / file).exists()
        assert f"bench/{file})" in page


def test_what_is_written_stands_between_the_marks() -> None:
    def lines(results: Results) -> Iterator[str]:
        yield from table(("peer", "rows/s"), [("kafka-eos", number(123456.7))])
        yield ", ".join(results)

    publication = Publication("sinks", "bench.md", ("x",), lines)
    begin, end = publication.marks
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    once = publication.written_into(page, {"x": NOTHING})
    assert once == (
        f"before\n{begin}\n\n| peer | rows/s |\n|---|--:|\n| kafka-eos | 123,457 |\n\nx\n\n"
        f"{end}\nafter\n"
    )
    assert publication.written_into(once, {"x": NOTHING}) == once


def test_a_spread_has_significant_digits() -> None:
    assert spread_text(Spread(9, 1.2345, 0.98765, 12.345)) == "1.23 (0.988 to 12.3)"


@pytest.mark.parametrize("publication", [PRICE, COST], ids=name)
def test_a_result_that_lacks_a_sink_compares_nothing(publication: Publication) -> None:
    alone = tuple(Series(part, "ms", {"peer": OURS}, (130.0,)) for part in ("p50", "p99"))
    both = (*alone, *(replace(each, labels={"peer": THEIRS}, samples=(100.0,)) for each in alone))

    def page(series: tuple[Series, ...]) -> str:
        result = Result("x", DAY, {"cores": 2}, {}, series)
        return "\n".join(publication.lines({END_TO_END: result}))

    assert page(both).count("1.3 times") == 2
    assert "times" not in page(alone)
