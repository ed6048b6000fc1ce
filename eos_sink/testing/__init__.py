"""The public name of `eos_sink_lab.testing`. Nothing else in the sink imports the lab."""

from typing import TYPE_CHECKING

import eos_sink_lab.testing as _testing

if TYPE_CHECKING:
    from eos_sink_lab.testing import *  # noqa: F403

__all__ = _testing.__all__


def __getattr__(name: str) -> object:
    return getattr(_testing, name)
