"""Minispark that reads a topic, with a checkpoint as Spark's Kafka source writes it.

It begins where `eos_sink.starting_offsets` says, unless it has its checkpoint. A batch has as many
rows of each partition as the first one of its configuration.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import eos_sink
from integration import minispark
from integration.checker import Rows, read_topic
from integration.minispark import Checkpoint, Config, MiniSpark

Ends = Mapping[int, int]


class SourceCheckpoint(Checkpoint):
    """The files that the sink reads, in Spark's format.

    Attributes:
        stream: Spark's id of the query, which begins with the directory.
    """

    def __init__(self, directory: Path, topic: str, starting: Ends) -> None:
        super().__init__(directory)
        self._topic = topic
        self._began = directory / "sources" / "0" / "0"
        metadata = directory / "metadata"
        if not metadata.exists():
            _write_at_once(metadata, json.dumps({"id": str(uuid.uuid4())}))
        self.stream: str = json.loads(metadata.read_text())["id"]
        if not self._began.exists():
            self._began.parent.mkdir(parents=True, exist_ok=True)
            _write_at_once(self._began, f"\0v1\n{self._json(starting)}")

    def start(self, batch: int) -> dict[int, int]:
        """The offsets at which a batch begins."""
        file = self._offsets / str(batch - 1) if batch else self._began
        return self._parse(file.read_text())

    def end(self, batch: int, ends: Ends) -> dict[int, int]:
        """The offsets at which a batch ends, as they were first planned."""
        path = self._offsets / str(batch)
        if not path.exists():
            about = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000)}
            _write_at_once(path, f"v1\n{json.dumps(about)}\n{self._json(ends)}")
        return self._parse(path.read_text())

    def _json(self, ends: Ends) -> str:
        return json.dumps({self._topic: ends})

    def _parse(self, content: str) -> dict[int, int]:
        ends = json.loads(content.splitlines()[-1])[self._topic]
        return {int(partition): end for partition, end in ends.items()}


class ReadingSpark(MiniSpark):
    """The driver of a query that copies the rows of a topic."""

    def __init__(self, config: Config) -> None:
        topic = config.options["subscribe"]
        starting = json.loads(eos_sink.starting_offsets(config.options))[topic]
        # The first row of each partition has offset 0.
        begins = {int(partition): max(0, offset) for partition, offset in starting.items()}
        self._source = SourceCheckpoint(Path(config.checkpoint), topic, begins)
        self._rows: Rows = read_topic(config.options["kafka.bootstrap.servers"], topic)
        super().__init__(replace(config, stream=self._source.stream))

    def _batches(self) -> Iterator[tuple[int, list[list[str]]]]:
        size, number = len(self._config.batches[0][0]), self._source.next
        while True:
            start = self._source.start(number)
            logs = {partition: self._rows.of(partition) for partition in start}
            ends = {each: min(at + size, len(logs[each])) for each, at in start.items()}
            if ends == start:
                return
            ends = self._source.end(number, ends)
            yield number, [logs[each][at : ends[each]] for each, at in sorted(start.items())]
            number += 1


def process(path: str, environment: dict[str, str], said: str) -> None:
    """See `minispark.process`."""
    minispark.process(path, environment, said, ReadingSpark)


def _write_at_once(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text)
    draft.rename(path)
