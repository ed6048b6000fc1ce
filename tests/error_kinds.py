"""The classes of errors, in the order of `eos_sink/errors.py`."""

from __future__ import annotations

from eos_sink import errors
from eos_sink.errors import EosSinkError

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, EosSinkError)
]
ERRORS = [kind for kind in KINDS if kind is not EosSinkError]
