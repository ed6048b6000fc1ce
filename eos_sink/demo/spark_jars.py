"""Spark's own Kafka sink, which does not come with pyspark: its jars from Maven Central, cached.

Only the demo's comparison needs them. eos-sink itself is jar-free.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.testing import ivy, manifest
from eos_sink.testing.cache import cache_root, exclusive
from eos_sink.testing.errors import DownloadError
from eos_sink.testing.jvm import Java, find_java

_TIMEOUT_S = 300.0
_SINK = "spark-sql-kafka-0-10_2.13"
_TOKENS = "spark-token-provider-kafka-0-10_2.13"

# Where Maven Central, or the mirror in use, lacks a part of the version's own set: the token
# provider's interface has not changed since 4.0, and any client from 3.9 on fits (measured on 4.2).
_SUBSTITUTES = (
    ("org.apache.spark", _TOKENS, "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)


def spark_kafka_jars(
    progress: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> Path:
    """The directory with the jars for the pyspark that is installed.

    Raises:
        DownloadError: neither the version's own set nor the substitutes could be had.
    """
    spark = version("pyspark")
    root = cache_root(environ)
    directory = root / "spark-kafka" / spark
    with exclusive(
        directory.with_name(f".{spark}.lock"),
        Deadline(_TIMEOUT_S),
        lambda: progress("Spark's Kafka sink: another process is downloading it, waiting ..."),
    ):
        if not _complete(directory):
            progress(f"Spark's own Kafka sink {spark}: downloading its jars, 10 MB (once) ...")
            _retrieve(spark, directory, root / "ivy", find_java(environ), environ)
    return directory


def ivy_file(spark: str, substitutes: bool) -> str:
    """What Ivy is asked for: the sink with what its own description names, or with substitutes."""
    wanted = [("org.apache.spark", _SINK, spark), *(_SUBSTITUTES if substitutes else ())]
    transitive = "false" if substitutes else "true"
    lines = "\n".join(
        f'    <dependency org="{organisation}" name="{name}" rev="{revision}"'
        f' transitive="{transitive}" conf="default->default"/>'
        for organisation, name, revision in wanted
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="eos-sink" module="spark-kafka"/>\n'
        f"  <dependencies>\n{lines}\n  </dependencies>\n"
        "</ivy-module>\n"
    )


def _complete(directory: Path) -> bool:
    known = manifest.read(directory)
    return known is not None and not known.problems(directory)


def _retrieve(
    spark: str, directory: Path, ivy_cache: Path, java: Java, environ: Mapping[str, str]
) -> None:
    """Download beside the final place and move there when it is complete."""
    draft = directory.with_name(f".{spark}.part")
    output = ""
    for substitutes in (False, True):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        output = ivy.ask_ivy(ivy_file(spark, substitutes), draft, ivy_cache, java, environ)
        if all(list(draft.glob(f"{name}-*.jar")) for name in (_SINK, _TOKENS, "kafka-clients")):
            _drop_what_spark_has(draft, environ)
            manifest.take(spark, draft).write(draft)
            shutil.rmtree(directory, ignore_errors=True)
            draft.rename(directory)
            return
    tail = "\n  ".join(output.splitlines()[-8:])
    raise DownloadError(f"Spark's Kafka sink {spark} could not be downloaded:\n  {tail}")


def _drop_what_spark_has(draft: Path, environ: Mapping[str, str]) -> None:
    """Spark's own jars win: two versions of one library on a class path are asking for trouble."""
    own = {_stem(jar) for jar in ivy.find_ivy(environ).parent.glob("*.jar")}
    for jar in draft.glob("*.jar"):
        if _stem(jar) in own:
            jar.unlink()


def _stem(jar: Path) -> str:
    return jar.name.rpartition("-")[0]
