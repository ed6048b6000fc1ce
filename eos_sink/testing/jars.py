"""`python -m eos_sink.testing.jars [VERSION ...]`: bring Kafka into the cache ahead of its use."""

from __future__ import annotations

import os
import sys

from eos_sink.testing.errors import TestClusterError
from eos_sink.testing.ivy import Workbench
from eos_sink.testing.jvm import find_java
from eos_sink.testing.kafka_files import DEFAULT_VERSION, ensure_kafka
from eos_sink.testing.progress import to_stderr

if __name__ == "__main__":
    try:
        bench = Workbench(find_java(), to_stderr, os.environ)
        for version in sys.argv[1:] or [DEFAULT_VERSION]:
            sys.stdout.write(f"Kafka {version}: {ensure_kafka(version, bench).directory}\n")
    except TestClusterError as error:
        sys.exit(str(error))
