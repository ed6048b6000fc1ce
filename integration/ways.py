"""Does what a section of docs/deployment.md tells: writes its files, runs its commands."""

from __future__ import annotations

import os
import re
import sys
import uuid
from pathlib import Path

from eos_sink_lab.testing import KafkaCluster
from integration.pages import WAIT, adapted, run
from tests.snippets import ROOT, Snippet, snippets_of

_PAGE = ROOT / "docs" / "deployment.md"
_PATIENCE_S = 400


class Section:
    """A section, with its own topic in place of `readings`.

    Args:
        title: its heading.
        place: an empty directory to do it in.
        python: what Spark's processes are to run.
        settings: Spark's, beside those that the section tells: where to run, by default.
    """

    def __init__(
        self,
        title: str,
        kafka: KafkaCluster,
        place: Path,
        python: Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self._title = title
        self._kafka = kafka
        self._place = place
        self._python = python or Path(sys.executable)
        conf = place / "conf"
        conf.mkdir()
        given = {"spark.ui.enabled": "false", **(settings or {"spark.master": "local[2]"})}
        lines = [f"{name} {value}\n" for name, value in given.items()]
        (conf / "spark-defaults.conf").write_text("".join(lines))
        self._conf = conf
        self.topic = f"readings_{uuid.uuid4().hex[:8]}"
        kafka.create_topic(self.topic, partitions=2)

    def follow(self, environ: dict[str, str] | None = None, without: str = "") -> str:
        """Do all of it, `without` the line that is so; what it prints."""
        blocks = _of(self._title)
        for block in blocks:
            if block.file_name:
                text = self._adapted(block.text)
                assert without in text.splitlines() or not without
                text = "".join(f"{line}\n" for line in text.splitlines() if line != without)
                text = WAIT + text if block.language == "python" else text
                (self._place / block.file_name).write_text(text)
        script = "".join(self._adapted(b.text) for b in blocks if b.language == "sh")
        tools = f"{self._python.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = {"PATH": tools, "SPARK_CONF_DIR": str(self._conf), **(environ or {})}
        bash = ["bash", "-euc", script]
        return run(bash, self._place, _PATIENCE_S, self._python, **given)

    def _adapted(self, text: str) -> str:
        text = adapted(text, self._kafka, self._place)
        text = text.replace("file:///var/spark/", f"file://{self._place}/")
        return re.sub(r'(?<=topic=)readings\b|(?<=")readings(?=")', self.topic, text)


def _of(title: str) -> list[Snippet]:
    """The blocks under a heading."""
    lines = _PAGE.read_text().splitlines()
    begin = lines.index(f"## {title}")
    after = (n for n, line in enumerate(lines) if n > begin and line.startswith("## "))
    end = next(after, len(lines))
    found = [b for b in snippets_of(_PAGE) if begin < b.line <= end]
    assert found, title
    return found
