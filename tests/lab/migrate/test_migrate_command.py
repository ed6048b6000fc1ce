"""`eos-sink migrate`: what it is given, what it shows, and its exit codes."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest

from eos_sink import cli
from tests.snippets import ROOT, snippets_of

GOOD = """
rows.writeStream.format("kafka").option("kafka.bootstrap.servers", "b:1").option("topic", "t") \\
    .option("checkpointLocation", "/c").start()
"""
BAD = GOOD.replace('.option("topic", "t")', '.option("kafka.acks", "1")')
SECRET = "hunter2"


def missing(document: str) -> set[str]:
    """The options that the JSON output reports as missing."""
    return {
        finding["name"]
        for query in json.loads(document)["queries"]
        for finding in query["findings"]
        if finding["verdict"] == "missing"
    }


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.py"
    file.write_text(GOOD)
    return file


def test_a_query_without_trouble_is_fine(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["migrate", "job.py"]) == 0
    shown = capsys.readouterr().out
    assert 'format("kafka-eos")' in shown
    assert "isolation.level=read_committed" in shown
    assert "job.py:2" in shown


def test_what_needs_a_change_is_an_exit_code(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text(BAD)
    assert cli.main(["migrate", "job.py"]) == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "No such file"),
        ("def (:", "job.py"),
        ("\0", "job.py"),
        (f"d.writeStream.format('kafka').option('o', {'+'.join(['x'] * 3000)})", "job.py"),
    ],
)
def test_what_cannot_be_read_is_wrong_usage(
    job: Path, capsys: pytest.CaptureFixture[str], text: str | None, part: str
) -> None:
    if text is None:
        job.unlink()
    else:
        job.write_text(text)
    assert cli.main(["migrate", "job.py"]) == 2
    assert part in capsys.readouterr().err


def test_a_program_in_another_language_is_not_taken_for_properties(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["migrate", "Job.scala"]) == 2
    assert "Job.scala" in capsys.readouterr().err


def test_a_file_without_a_query_is_said_to_have_none(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text("print('kafka')")
    assert cli.main(["migrate", "job.py"]) == 0
    assert "No query" in capsys.readouterr().out


def test_inputs_of_all_kinds_at_once(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a=b").write_text("kafka.acks=all")
    Path("spark.conf").write_text("spark.speculation true\nspark.datasource.kafka-eos.topic t")
    assert cli.main(["migrate", "job.py", "a=b", "spark.conf", "eos.id=x", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [query["file"] for query in document["queries"]] == ["job.py", "a=b", "spark.conf", ""]
    alone = [finding for query in document["queries"][1:] for finding in query["findings"]]
    assert {finding["verdict"] for finding in alone} == {"same"}
    assert [finding["verdict"] for finding in document["session"]] == ["refused"]
    assert document["ok"] is False


@pytest.mark.parametrize("where", ["job.py", "spark.conf"])
def test_settings_of_the_session_give_what_a_query_does_not(
    job: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    program = "rows.writeStream.format('kafka').option('eos.id', 'x').start()\n"
    job.write_text(program)
    Path("spark.conf").write_text("spark.app.name=x")
    assert cli.main(["migrate", "job.py", "spark.conf", "--json"]) == 1
    assert missing(capsys.readouterr().out) == {"kafka.bootstrap.servers"}
    setting = "spark.datasource.kafka-eos.kafka.bootstrap.servers"
    if where == "job.py":
        job.write_text(f"{program}spark.conf.set('{setting}', 'b:1')\n")
    else:
        Path(where).write_text(f"{setting} b:1")
    assert cli.main(["migrate", "job.py", "spark.conf"]) == 0
    assert "eos_sink.register(spark)" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "text"), [([], "topic=t"), (["--python"], GOOD)])
def test_standard_input(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    text: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert cli.main(["migrate", "-", *words]) == 0
    assert "-:" in capsys.readouterr().out


def test_options_alone_determine_what_their_query_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["migrate", "topic=t"]) == 0
    shown = capsys.readouterr().out
    assert "absolute checkpointLocation or eos.id, kafka.bootstrap.servers" in shown


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("frame.write.format('kafka').mode('append').save()", "txnVersion"),
        ("frame.write.format('kafka').mode('append').save()", "eos_sink.write(frame, options)"),
        (
            "def each(frame, number):\n    frame.write.format('kafka').mode('append').save()\n"
            "rows.writeStream.foreachBatch(each).start()",
            "In foreachBatch",
        ),
    ],
)
def test_what_a_batch_has_to_know(
    job: Path, capsys: pytest.CaptureFixture[str], program: str, part: str
) -> None:
    job.write_text(program)
    assert cli.main(["migrate", "job.py", "--json"]) == 1
    printed = capsys.readouterr().out
    assert any(part in note for note in json.loads(printed)["notes"])
    assert missing(printed) == {"kafka.bootstrap.servers"}


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_no_secret_is_printed(
    job: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    secrets = {
        "kafka.sasl.password": SECRET,
        "kafka.sasl.jaas.config": f'a.PlainLoginModule required username="u" password="{SECRET}";',
        "kafka.ssl.key.password": SECRET,
        "kafka.sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "kafka.sasl.pasword": SECRET,
        "pasword": SECRET,
    }
    options = "".join(f".option({name!r}, {value!r})" for name, value in secrets.items())
    job.write_text(GOOD.replace('.option("topic", "t")', options))
    pairs = [f"{name}={value}" for name, value in secrets.items()]
    assert cli.main(["migrate", "job.py", *pairs, *words]) == 1
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    assert "***" in said.out


def test_the_page_shows_what_the_command_prints(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = snippets_of(ROOT / "docs" / "migrate.md")
    (program,) = [block.text for block in blocks if block.language == "python"]
    first, *more = [line for block in blocks if block.language == "sh" for line in block.commands]
    (shown,) = [block.text for block in blocks if block.language == "text"]
    job.write_text(program)
    assert cli.main(shlex.split(first)[1:]) == 1
    printed = capsys.readouterr().out
    assert shown.strip() == "\n".join(line.rstrip() for line in printed.strip().splitlines())
    Path("conf").symlink_to(ROOT / "conf")
    codes = [cli.main(shlex.split(command)[1:]) for command in more]
    assert codes == [0, 1, 0, 1]
