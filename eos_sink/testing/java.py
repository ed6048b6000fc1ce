"""`python -m eos_sink.testing.java`: the JAVA_HOME that Spark and Kafka would get."""

from __future__ import annotations

import sys

from eos_sink.testing.errors import JavaNotFoundError
from eos_sink.testing.jvm import java_home

if __name__ == "__main__":
    try:
        sys.stdout.write(f"{java_home()}\n")
    except JavaNotFoundError as error:
        sys.exit(str(error))
