"""Downloads the jars of Spark's own Kafka sink, which pyspark does not contain, and caches them.

Only comparisons need them. eos-sink itself needs no jar.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from eos_sink_lab.testing.cache import cache_root
from eos_sink_lab.testing.cluster_errors import DownloadError
from eos_sink_lab.testing.jar_cache import Artifact, download_jars, ensure_jars, find_ivy
from eos_sink_lab.testing.java import find_java

_SINK = "spark-sql-kafka-0-10_{}"
_TOKENS = "spark-token-provider-kafka-0-10_2.13"

# Where Maven Central, or the mirror in use, lacks a part of the version's own set: the token
# provider's interface has not changed since 4.0, and any client from 3.9 on fits (measured on 4.2).
_SUBSTITUTES = (
    Artifact("org.apache.spark", _TOKENS, "4.0.0", transitive=False),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.1", transitive=False),
    Artifact("org.apache.commons", "commons-pool2", "2.12.1", transitive=False),
)


def spark_kafka_jars(
    progress: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> Path:
    """Return a directory with the jars for the installed pyspark.

    Raises:
        DownloadError: neither the version's own jars nor the substitutes are available.
    """
    spark = version("pyspark")
    directory = cache_root(environ) / "spark-kafka" / spark
    label = f"Spark's own Kafka sink {spark} (10 MB)"

    def download(draft: Path) -> None:
        java = find_java(environ)
        # Of Scala: what pyspark contains.
        name = _SINK.format("2.12" if spark.startswith("3.") else "2.13")
        sink = Artifact("org.apache.spark", name, spark)
        alone = Artifact("org.apache.spark", name, spark, transitive=False)
        try:
            download_jars([sink], draft, java, label=label, progress=progress, environ=environ)
        except DownloadError:
            for jar in draft.glob("*.jar"):
                jar.unlink()
            wanted = [alone, *_SUBSTITUTES]
            download_jars(wanted, draft, java, label=label, progress=progress, environ=environ)
        _drop_what_spark_has(draft, environ)

    ensure_jars(directory, download, label, progress)
    return directory


def _drop_what_spark_has(draft: Path, environ: Mapping[str, str]) -> None:
    """Spark's own jars win: a class path must not have two versions of a library."""
    own = {_stem(jar) for jar in find_ivy(environ).parent.glob("*.jar")}
    for jar in draft.glob("*.jar"):
        if _stem(jar) in own:
            jar.unlink()


def _stem(jar: Path) -> str:
    return jar.name.rpartition("-")[0]
