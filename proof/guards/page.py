"""The results as tables of docs/internals/guards.md, and as the JSON file behind the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from proof.guards.guard import Guard, Proof
from proof.guards.judge import Shown
from proof.guards.model import found, rows_of
from proof.guards.table import CHAPTERS
from proof.guards.trial import ROOT, Outcome, Verdict

KEPT = ROOT / "build" / "guards.json"
PAGE = ROOT / "docs" / "internals" / "guards.md"
BEGIN, END = "<!-- made by make guards: begin -->\n", "<!-- made by make guards: end -->\n"
_LONGEST = 150
_HEAD = (
    "| Guard | Removed from | Result in the model | Failing test | Failure |\n"
    "|---|---|---|---|---|\n"
)


def keep(results: Mapping[str, list[Shown]]) -> None:
    """Add these results to those of earlier runs."""
    kept = _read()
    kept.update({name: [asdict(each) for each in shown] for name, shown in results.items()})
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1, default=lambda outcome: outcome.value))


def kept() -> dict[str, list[Shown]]:
    """The results of earlier runs."""
    return {
        name: [
            Shown(
                Proof(**each["proof"]),
                _verdict(each["whole"]),
                _verdict(each["verdict"]),
                tuple(map(_verdict, each["alone"])),
            )
            for each in shown
        ]
        for name, shown in _read().items()
    }


def _read() -> dict[str, list[dict[str, Any]]]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def _verdict(given: Mapping[str, Any]) -> Verdict:
    return Verdict(Outcome(given["outcome"]), given["text"], given["seconds"])


def write(results: Mapping[str, list[Shown]]) -> None:
    """Put the results between the page's marks."""
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + _tables(results) + "\n" + END + after)


def _tables(results: Mapping[str, list[Shown]]) -> str:
    return "\n".join(
        f"### {chapter}\n\n{_HEAD}" + "".join(_rows(guard, results[guard.name]) for guard in guards)
        for chapter, guards in CHAPTERS.items()
    )


def _rows(guard: Guard, shown: Iterable[Shown]) -> str:
    cells = [f"**{guard.name}**: {guard.rule}", _files(guard), _model(guard)]
    lines = []
    for each in shown:
        lines.append(_line([*cells, _test(each), _how(each)]))
        cells = ["", "", ""]
    return "".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _files(guard: Guard) -> str:
    files = dict.fromkeys(removal.file.removeprefix("eos_sink/") for removal in guard.removals)
    return ", ".join(f"`{file}`" for file in files)


def _model(guard: Guard) -> str:
    if not guard.rows:
        return f"not modelled: {guard.outside}"
    told = []
    for switch in guard.rows:
        first = next(iter(rows_of(switch)), None)
        told.append(
            f"`{first.name}`: {found(first) or 'fails'}" if first else f"`{switch}`: no row"
        )
    return "; ".join(told)


def _test(shown: Shown) -> str:
    file, _, rest = shown.proof.test.partition("::")
    name, _, case = rest.split("::")[-1].partition("[")
    case = case.rstrip("]").removeprefix("4.3.0").lstrip("-")
    words = name.removeprefix("test_").replace("_", " ")
    return f"`{file.removesuffix('.py')}`: {words}" + (f" [{case}]" if case else "")


def _how(shown: Shown) -> str:
    text = _plain(shown.verdict.text)
    if shown.wrong:
        return f"**{shown.wrong}**"
    told = f"{text} ({shown.verdict.seconds:.1f} s)" if shown.verdict.seconds else text
    if shown.alone:
        return f"only without *{shown.proof.without}* as well: {told}"
    return told


def _plain(text: str) -> str:
    """The first line of a failure, without what differs from run to run."""
    line = text.strip().splitlines()[0] if text.strip() else "fails"
    if line.endswith("it said:"):
        line = "the query did not stop"
    if stopped := re.search(r'"error": "(\w+)", "text": "(.*?)", "data"', line):
        line = f"{stopped[1]}: {stopped[2]}"
    line = re.sub(r"/\S*/(\w)", r"\1", line)
    line = re.sub(r"\b[0-9a-f]{8,}\b", "...", line)
    line = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", line)
    line = re.sub(r"^(?:eos_sink\.\w+\.)", "", line)
    line = line[:_LONGEST] + ("..." if len(line) > _LONGEST else "")
    return f"`{line.replace('`', chr(39))}`"
