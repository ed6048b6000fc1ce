"""Reports which `eos_sink` a test's processes import: itself, a child, a fork of a fork server.

python -m proof.guards.probe
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from multiprocessing.queues import SimpleQueue

import eos_sink


def say(queue: SimpleQueue[str | None]) -> None:
    queue.put(eos_sink.__file__)


def main() -> None:
    child = "import eos_sink; print(eos_sink.__file__)"
    said = subprocess.run(
        [sys.executable, "-c", child], check=True, capture_output=True, text=True, cwd="/"
    ).stdout
    forks = multiprocessing.get_context("forkserver")
    queue: SimpleQueue[str | None] = forks.SimpleQueue()
    fork = forks.Process(target=say, args=(queue,))
    fork.start()
    sys.stdout.write(f"{eos_sink.__file__}\n{said}{queue.get()}\n")
    fork.join()


if __name__ == "__main__":
    main()
