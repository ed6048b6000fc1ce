"""Programs in a PID namespace of their own."""

from __future__ import annotations

import shutil
import subprocess

IN_ANOTHER_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")


def has_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*IN_ANOTHER_NAMESPACE, "true"], capture_output=True, check=False)
    return tried.returncode == 0
