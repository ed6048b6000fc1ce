"""The rows of a topic that the sink has written to a dead letter topic instead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from eos_sink.testing.topic_scan import Row
from eos_sink.verify.read_rows import Meter, TopicReader
from eos_sink.verify.row_columns import Chunk
from eos_sink.verify.verify_model import VerifyOptions

_TOPIC = "__connect.errors.topic"


def read_dead_letters(
    options: VerifyOptions, chunks: Sequence[Chunk], meter: Meter
) -> tuple[list[Chunk], bool]:
    """Read the dead letters of the topic.

    Args:
        options: as for the topic.
        chunks: the topic's rows, which were read before.
        meter: shows the progress.

    Returns:
        Their numbers, and whether Ctrl-C ended the reading. Without a source, a number outside of
        those in the topic proves nothing about the rows between, and is left out.

    Raises:
        ReaderError: the dead letter topic cannot be read.
    """
    assert options.dead_letters is not None
    topic = options.source.topic.encode()

    def is_of_topic(row: Row) -> bool:
        # A letter that was written again may have the header twice; the last one is the sink's.
        return dict(row.headers() or ()).get(_TOPIC) == topic

    own = replace(options, source=options.dead_letters, partitions=frozenset(), last=None)
    with closing(TopicReader(replace(own, order=None), meter, is_of_topic)) as reader:
        reader.read(0)
        found, interrupted = reader.columns.chunks(), reader.interrupted
    if options.expected is None and options.expected_from is None and options.group is None:
        low = min((int(each.values.min()) for each in chunks), default=0)
        high = max((int(each.values.max()) for each in chunks), default=-1)
        found = [
            replace(each, values=each.values[(each.values >= low) & (each.values <= high)])
            for each in found
        ]
    return [each for each in found if len(each.values)], interrupted
