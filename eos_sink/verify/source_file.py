"""What the source of a topic says that there should be: one identity a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eos_sink.verify.row_columns import Chunk, Columns
from eos_sink.verify.row_identity import as_number


class SourceFileError(Exception):
    """The file cannot be used; the message says why."""


class SourceFile:
    """Read line by line, each time anew; empty lines are none.

    Args:
        path: the file.
        numbered: each line is a whole number.
    """

    def __init__(self, path: Path, *, numbered: bool) -> None:
        self._path = path
        self._numbered = numbered

    def chunks(self) -> list[Chunk]:
        """A number for each line, as a record of it has one.

        Raises:
            SourceFileError: it cannot be read, or a line is no whole number and should be.
        """
        columns = Columns()
        for place, (number, _) in enumerate(self._lines()):
            columns.add(0, place, number)
        return columns.chunks()

    def lines_of(self, numbers: set[int]) -> dict[bytes, int]:
        """The lines that have these numbers, and how often each is there.

        Raises:
            SourceFileError: it cannot be read any more.
        """
        found: dict[bytes, int] = {}
        for number, line in self._lines():
            if number in numbers:
                found[line] = found.get(line, 0) + 1
        return found

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            with self._path.open("rb") as lines:
                for place, line in enumerate(lines, 1):
                    text = line.rstrip(b"\r\n")
                    if not text:
                        continue
                    number = as_number(text) if self._numbered else hash(text)
                    if number is None:
                        raise SourceFileError(f"{self._path}:{place} is no whole number")
                    yield number, text
        except OSError as error:
            raise SourceFileError(f"{self._path}: {error.strerror}") from error
