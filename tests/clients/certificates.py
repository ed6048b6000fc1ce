"""Certificates for tests without a broker, made once a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eos_sink.testing.certificates import Authority


def authority(directory: Path) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on the PATH")
    return Authority(directory)
