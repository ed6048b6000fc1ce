"""The documentation is true: its commands exist, its tables are the code's, its links lead on.

Its Python is run against a real Kafka and a real Spark by `integration/test_docs.py`.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

from eos_sink import cli, errors
from eos_sink.cli.arguments import ENVIRONMENT
from eos_sink.cli.exit_codes import MEANINGS
from eos_sink.identity import DEFAULT_PREFIX, SESSION_PREFIX
from eos_sink.kafka_config.acls import Permissions
from eos_sink.kafka_config.java_settings import SETTINGS
from eos_sink.kafka_config.properties_file import read_properties
from eos_sink.ops.doctor.checks import CHECKS
from eos_sink.ops.doctor.findings import Level, run_checks
from eos_sink.ops.doctor.spark import SPARK_CHECKS, SparkFacts
from eos_sink.options import OPTIONS, Kind, kind_of, parse_options
from eos_sink.spark.session_defaults import Defaults
from eos_sink.version import REPOSITORY
from tests.error_kinds import ERRORS
from tests.kafka_acls_command import parse_kafka_acls
from tests.ops.doctor.cases import COMMANDS, PYTHON
from tests.snippets import PAGES, ROOT, Snippet, all_snippets, make_targets, snippets_of, table

LANGUAGES = {"sh", "python", "properties", "text", "yaml"}
OPTIONS_PAGE = ROOT / "docs" / "options.md"
_FEWEST_ALIKE = 3
RUN = [snippet for snippet in all_snippets() if snippet.not_run is None]


def place(snippet: Snippet) -> str:
    return snippet.place


def section_of(snippet: Snippet) -> str:
    """The heading above a block."""
    lines = snippet.page.read_text().splitlines()[: snippet.line]
    return [line for line in lines if line.startswith("## ")][-1].removeprefix("## ")


@pytest.mark.parametrize("snippet", all_snippets(), ids=place)
def test_each_block_says_what_language_it_is_in(snippet: Snippet) -> None:
    assert snippet.language in LANGUAGES


@pytest.mark.parametrize("snippet", [s for s in RUN if s.language == "sh"], ids=place)
def test_each_command_is_one_that_works(snippet: Snippet) -> None:
    for command in snippet.commands:
        words = shlex.split(command)
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= make_targets(), command
        elif words[0] == "eos-sink":
            # The test of the command in integration/ runs those of its page, and
            # tests/lab/migrate/test_migrate_command.py those of docs/migrate.md.
            assert cli.parser().parse_args(words[1:]).command == words[1], command
        elif words[0] == "openssl":
            # integration/test_incidents.py runs these.
            assert snippet.page.name == "connect.md", command
        elif words[0] in {"kafka-acls", "kafka-topics"}:
            # integration/test_acls.py runs a query with nothing else than these.
            assert words[0] == "kafka-topics" or parse_kafka_acls(command)[1], command
        elif snippet.page.name == "deployment.md":
            # integration/test_ways.py follows its sections.
            assert section_of(snippet) in (ROOT / "integration" / "test_ways.py").read_text()
        elif words[0] == "spark-submit" and "doctor" in words:
            # integration/test_doctor.py runs it.
            assert cli.parser().parse_args(words[words.index("doctor") :]).spark, command
        elif words[0] == "export":
            # integration/test_docs.py gives spark-submit what this sets.
            assert command == "export JAVA_HOME=$(python -m eos_sink.testing.java)", command
        elif words[0] == "spark-submit":
            # integration/test_docs.py hands the block of that name on the same page to it.
            assert words[-1] in {s.file_name for s in snippets_of(snippet.page)}, command
        else:
            pytest.fail(f"{command!r}: check it here, or mark the block as not run")


@pytest.mark.parametrize("snippet", [s for s in RUN if s.language == "python"], ids=place)
def test_each_python_block_is_python(snippet: Snippet) -> None:
    compile(snippet.text, snippet.place, "exec")


def test_the_options_table_is_the_code_s() -> None:
    expected = [
        [f"{place_of(o.name)}`{o.name}`", "none" if o.default is None else f"`{o.default}`"]
        for o in OPTIONS
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    advanced = table(OPTIONS_PAGE, "Advanced")
    rows = [*table(OPTIONS_PAGE), *advanced]
    own = [row[:2] for row in rows if kind_of(row[0].split("`")[1]) is not Kind.SPARK]
    assert own == expected, f"{OPTIONS_PAGE} needs:\n{lines}"
    assert all(meaning and reason for *_, meaning, reason in advanced)


def place_of(option: str) -> str:
    """The anchor of an option's row; `kafka.*` has a section."""
    return "" if option == "kafka.*" else f'<a id="{option.lower()}"></a>'


@pytest.mark.parametrize("name", [*(o.name for o in OPTIONS), "checkpointLocation", "kafka.acks"])
def test_an_error_about_an_option_leads_to_the_option(name: str) -> None:
    error = errors.ConfigurationError(f"Query q: option {name} is wrong.", remedy="Mend it.")
    page, _, anchor = error.link().partition("#")
    assert anchor == ("kafka" if name in ("kafka.*", "kafka.acks") else name.lower())
    assert str(error).endswith(f"({error.link()})")
    assert anchor in anchors(ROOT / page)


def test_an_error_about_an_option_without_a_row_leads_to_the_error() -> None:
    for option in ("'eos.idd'", "subscribe", "topics"):
        error = errors.ConfigurationError(f"Option {option} is wrong.", remedy="Mend it.")
        assert error.link() == "docs/errors.md#configurationerror"


def test_the_table_of_kafka_settings_is_the_code_s() -> None:
    """Settings with the same treatment and the same note are one row."""
    names: dict[tuple[str, str], list[str]] = {}
    for row in SETTINGS:
        treatment = f"`{row.librdkafka}`" if row.librdkafka else row.handling.value
        names.setdefault((treatment, row.note), []).append(row.name)
    expected = [
        [", ".join(f"`{name}`" for name in shortened(names[group])), *group] for group in names
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert table(OPTIONS_PAGE, "Kafka settings") == expected, f"{OPTIONS_PAGE} needs:\n{lines}"


def shortened(names: list[str]) -> list[str]:
    """The names of a row, with PREFIX.* for three or more that no other row shares."""

    def is_one_row(prefix: str) -> bool:
        same = {row.name for row in SETTINGS if row.name.startswith(prefix)}
        return len(same) >= _FEWEST_ALIKE and same <= set(names)

    shown: dict[str, None] = {}
    for name in names:
        words = name.split(".")
        prefixes = (".".join(words[:length]) + "." for length in range(1, len(words)))
        shown[next((f"{prefix}*" for prefix in prefixes if is_one_row(prefix)), name)] = None
    return list(shown)


@pytest.mark.parametrize(
    "snippet",
    [
        snippet
        for snippet in snippets_of(ROOT / "docs" / "connect.md")
        if snippet.language == "properties" and not snippet.text.startswith("spark.")
    ],
    ids=place,
)
def test_each_example_of_kafka_settings_is_accepted(snippet: Snippet) -> None:
    given = {entry.name: entry.value for entry in read_properties(snippet.text)}
    options = parse_options({"kafka.bootstrap.servers": "kafka:9093", "eos.id": "q", **given})
    assert options.cluster.client.warnings == ()


def test_the_permissions_are_the_code_s() -> None:
    commands = [
        parse_kafka_acls(command)
        for snippet in snippets_of(ROOT / "docs" / "connect.md")
        for command in snippet.commands
        if command.startswith("kafka-acls")
    ]
    needs = Permissions(DEFAULT_PREFIX, "__eos_sink_log")
    log = {needs.log_read, needs.log_write, needs.log_create}
    source = needs.source("check-payments", ["payments"])
    expected = {*needs.topic("readings"), needs.transactions, needs.group, *log, *source}
    assert {user for user, _ in commands} == {"readings"}
    assert sorted(map(str, (acl for _, acls in commands for acl in acls))) == sorted(
        map(str, expected)
    )


def test_the_checks_of_the_doctor_are_the_code_s() -> None:
    text = (ROOT / "docs" / "commands.md").read_text().partition("\n## Doctor\n")[2]
    levels, _, checks = text.partition("\n### What is checked\n")
    assert first_cells(levels) == [level.value for level in Level]
    assert first_cells(checks) == [*CHECKS, *SPARK_CHECKS]


def first_cells(text: str) -> list[str]:
    """Those of the table in a text, without its head."""
    return re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)[1:]


def test_the_errors_table_is_the_code_s() -> None:
    rows = [f"[`{kind.__name__}`](#{kind.__name__.lower()})" for kind in ERRORS]
    assert [row[0] for row in table(ROOT / "docs" / "errors.md")] == rows


@pytest.mark.parametrize("kind", ERRORS)
def test_the_text_of_each_error_leads_to_its_section(kind: type[errors.EosSinkError]) -> None:
    link = re.search(r"\(\S*(docs/.+)#(.+)\)$", str(kind("It broke.", remedy="Mend it.")))
    assert link
    page = ROOT / link[1]
    assert link[2] in anchors(page)
    assert f"## {kind.__name__}\n" in page.read_text()


def test_the_table_of_commands_is_the_code_s() -> None:
    expected = [[f"`{command.NAME}`", command.HELP] for command in cli.commands()]
    rows = [row[:2] for row in table(ROOT / "docs" / "commands.md")]
    lines = "\n".join(f"| {' | '.join(row)} | PAGE |" for row in expected)
    assert rows == expected, f"docs/commands.md needs:\n{lines}"


def test_the_page_of_the_command_line_knows_the_environment_and_each_exit_code() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    for option, name in ENVIRONMENT.items():
        assert f"| `{option}` | `{name}` |" in text
    told = re.findall(r"^\| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert told == [(str(int(code)), meaning) for code, meaning in MEANINGS.items()]


def test_the_example_options_are_options() -> None:
    lines = (ROOT / "conf" / "query.properties").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    options = parse_options(given)
    assert options.topic == "readings"
    assert options.names.query.startswith("readings_hourly-")
    assert options.cluster.client.settings["compression.type"] == "lz4"


def test_the_example_spark_settings_are_settings() -> None:
    lines = (ROOT / "conf" / "spark-defaults.conf").read_text().splitlines()
    for line in lines:
        if line and not line.startswith("# "):
            assert re.fullmatch(r"spark\.[a-zA-Z.]+ +\S+", line), line
    # What doctor recommends, the example sets.
    settings = dict(line.split() for line in lines if line and not line.startswith("#"))
    spark = SparkFacts(PYTHON, "4.2.0", True, "python", settings, [PYTHON])
    checked = run_checks(SPARK_CHECKS, spark, COMMANDS.grant)
    assert {found.level for some in checked.values() for found in some} == {Level.OK}
    told = (line.removeprefix("# ").split() for line in lines if SESSION_PREFIX in line)
    defaults = Defaults.of_settings(dict(setting for setting in told if len(setting) == 2))
    assert parse_options(defaults.fill_in({"eos.id": "x"})).topic == "readings"


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings, and those that it sets itself."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    own = set(re.findall(r'<a id="(.+?)">', text))
    return own | {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+(?:\([^)]*\))?[^)]*)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "design.md"], ids=lambda p: p.name)
def test_each_thing_has_the_name_of_the_glossary(page: Path) -> None:
    """docs/how-it-works.md#words."""
    others = r"small tasks?|rejected rows?|repetitions?"
    assert re.findall(others, page.read_text(), re.IGNORECASE) == []


def test_pages_install_from_a_clone_exactly_while_there_is_no_package() -> None:
    clone = re.compile(r"""PyPI yet|pip (?:install|wheel)\b[^`\n]* "?\.(?:\[\w+\]"|[`\s])""")
    found = {page.name for page in PAGES if clone.search(page.read_text())}
    expected = set() if REPOSITORY else {"README.md", "get-started.md", "platforms.md"}
    assert found == expected, "a package is installed with: pip install 'eos-sink[EXTRA]'"


def test_each_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "README.md" or f"({name})" in index, name


def test_the_runbook_names_each_alert_beside_the_section_that_it_leads_to() -> None:
    rules = yaml.safe_load((ROOT / "conf" / "prometheus" / "eos-sink-alerts.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    expected = {
        (rule["alert"], rule["annotations"]["runbook"].partition("#")[2]) for rule in alerts
    }
    rows = table(ROOT / "docs" / "runbook.md")
    told = {
        (name, where)
        for _, link, names in rows
        for name in re.findall(r"`(\w+)`", names)
        for where in re.findall(r"\(#(.+)\)", link)
    }
    assert told == expected


def test_the_module_map_is_that_of_the_layers_and_quotes_each_package() -> None:
    rows = dict(
        re.findall(r"^\| `([^`]+)` \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    )
    for path in rows:
        assert (ROOT / path).exists(), path
    contract = re.search(
        r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert contract
    layers = re.findall(r"\w+", contract[1])
    mapped = [path for path in rows if path.startswith("eos_sink/")]
    assert [Path(path).stem for path in mapped] == [name for name in layers if name != "__main__"]
    for path in mapped:
        module = ROOT / path / "__init__.py" if path.endswith("/") else ROOT / path
        docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
        assert docstring.split("\n\n")[0] == rows[path], path


def test_each_test_that_a_page_names_is_there() -> None:
    named = {
        (page.name, *found)
        for page in PAGES
        for found in re.findall(
            r"`((?:tests|integration)/[\w/]+\.py)(?:::(\w+))?", page.read_text()
        )
    }
    assert named
    for page, file, name in named:
        assert (ROOT / file).is_file(), f"{page}: {file}"
        assert f"def {name}(" in (ROOT / file).read_text() or not name, f"{page}: {file}::{name}"
