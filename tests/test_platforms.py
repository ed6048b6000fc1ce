"""The job definitions of docs/platforms.md: they can be parsed, and every name in them exists.

No platform was at hand to run them on.
"""

from __future__ import annotations

import configparser
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from eos_sink import cli
from eos_sink.cli.arguments import ENVIRONMENT
from tests.snippets import ROOT, snippets_of, table

PAGE = ROOT / "docs" / "platforms.md"
CONF = ROOT / "conf" / "platforms"
FILES = sorted(path for path in CONF.rglob("*") if path.is_file())
JARS = Path(pyspark.__file__).parent / "jars"
ELSEWHERE = {
    "spark.emr-serverless.driverEnv.": "EMR's own",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "composed of two constants",
}
"""Settings, or prefixes of some, that are no constant of Spark's classes."""

# JVM specification, 4.4.7: a tag, the length, the text.
_CONSTANT = re.compile(rb"\x01(..)(spark\.[\w.-]+)", re.DOTALL)
_SETTING = re.compile(r"\bspark(?:\.[A-Za-z][\w-]*)+")


def load(path: Path) -> Any:
    if path.suffix == ".json":
        return json.loads(path.read_text())
    documents = list(yaml.safe_load_all(path.open()))
    return documents[0] if len(documents) == 1 else documents


def texts(value: Any) -> Iterator[str]:
    """Every key and every text of a document."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            yield from texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below)
    else:
        yield str(value)


def settings() -> set[str]:
    """Every Spark setting that the page and its files name."""
    page = re.sub(r"\(https://\S+\)", "", PAGE.read_text())
    documents = (text for path in FILES if path.suffix != "" for text in texts(load(path)))
    return {name for text in [page, *documents] for name in _SETTING.findall(text)}


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Spark's settings and prefixes of some: string constants of its classes."""
    found = set()
    for jar in (
        jar for name in ("core", "yarn", "kubernetes") for jar in JARS.glob(f"spark-{name}_*")
    ):
        with zipfile.ZipFile(jar) as opened:
            for name in opened.namelist():
                for constant in _CONSTANT.finditer(opened.read(name)):
                    length = int.from_bytes(constant[1], "big")
                    found.add(constant[2][:length].decode())
    return found


def is_known(setting: str, known: set[str]) -> bool:
    """By its name, or by a prefix such as `spark.executorEnv.`, below which names are free."""
    dots = [dot.end() for dot in re.finditer(r"\.", f"{setting}.")]
    prefixes = {f"{setting}."[:dot] for dot in dots} - {"spark."}
    return bool(known & {setting, *prefixes}) or setting.startswith(tuple(ELSEWHERE))


def test_each_setting_is_one_of_spark_s(known: set[str]) -> None:
    assert not is_known("spark.speculatio", known)
    assert not is_known("spark.kubernetes.container.images", known)
    assert len(settings()) > 10
    assert [name for name in sorted(settings()) if not is_known(name, known)] == []


def test_each_wheel_is_of_this_version_and_its_extras_exist() -> None:
    packaging = configparser.ConfigParser()
    packaging.read(ROOT / "setup.cfg")
    given = "\n".join(path.read_text() for path in [PAGE, *FILES])
    found = re.findall(r"\beos_sink-([\w.]+)-py3-none-any\.whl(?:\[(\w+)\])?", given)
    assert len(found) > 1
    assert {version for version, _ in found} == {packaging["metadata"]["version"]}
    extras = {extra for _, extra in found if extra}
    assert extras <= set(packaging["options.extras_require"])


def test_each_archive_is_unpacked_where_python_is_looked_for() -> None:
    given = "\n".join(path.read_text() for path in [PAGE, *FILES])
    assert set(re.findall(r"\S*tar\.gz#(\w+)", given)) == {"environment"}
    assert set(re.findall(r"PYTHON\W+(\./\S+?/python)", given)) == {"./environment/bin/python"}


def test_each_definition_is_on_the_page() -> None:
    for path in FILES:
        assert f"../{path.relative_to(ROOT)}" in PAGE.read_text(), path


def test_the_operator_starts_what_the_image_contains() -> None:
    image = (CONF / "kubernetes" / "Dockerfile").read_text()
    application = load(CONF / "kubernetes" / "spark-application.yaml")
    assert application["apiVersion"] == "sparkoperator.k8s.io/v1beta2"
    assert application["kind"] == "SparkApplication"
    spec = application["spec"]
    assert {"type", "sparkVersion", "mainApplicationFile", "driver", "executor"} <= spec.keys()
    assert f"FROM spark:{spec['sparkVersion']}-python3\n" in image
    assert set(re.findall(r"spark\S*_2\.13/(.+?)/", image)) == {spec["sparkVersion"]}
    (copied,) = re.findall(r"^COPY (\S+\.py) (\S+/)$", image, re.MULTILINE)
    program = f"local://{copied[1]}{copied[0]}"
    assert spec["mainApplicationFile"] == program
    (submit,) = (s.text for s in snippets_of(PAGE) if "--master k8s://" in s.text)
    assert submit.split()[-1] == program
    assert f"container.image={spec['image']} " in submit
    claims = {volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]}
    assert claims == set(re.findall(r"claimName=(\S+)", submit))


def test_the_exporter_is_found_where_it_serves() -> None:
    deployment, service, monitor = load(CONF / "kubernetes" / "exporter.yaml")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert service["metadata"]["labels"] == monitor["spec"]["selector"]["matchLabels"]
    (container,) = template["spec"]["containers"]
    _, _, module, *words = container["command"]
    given = cli.parser().parse_args([*words, "--bootstrap-server", "kafka:9092"])
    assert module == "eos_sink"
    assert [port["containerPort"] for port in container["ports"]] == [given.port]
    ports = {port["name"] for port in container["ports"]}
    assert {port["port"] for port in monitor["spec"]["endpoints"]} == ports
    assert {port["name"] for port in service["spec"]["ports"]} == ports
    assert {each["name"] for each in container["env"]} <= set(ENVIRONMENT.values())


def test_a_platform_is_said_to_have_the_format_where_its_spark_is_4_0_or_newer() -> None:
    rows = table(PAGE)
    assert len(rows) > 8
    for platform, spark, _, has_format in rows:
        assert has_format == ("yes" if int(spark.partition(".")[0]) >= 4 else "no"), platform
