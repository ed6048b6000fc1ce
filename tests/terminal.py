"""A terminal in memory."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """What is written to it; it says that it is a terminal. See the fixture `colours`."""

    def isatty(self) -> bool:
        return True
