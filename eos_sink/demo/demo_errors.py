"""What can keep the demo from showing anything."""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on; the message says why and what helps."""
