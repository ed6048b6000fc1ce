"""A release, rehearsed: `make rehearse`.

    python -m tools.rehearse DIRECTORY

Builds the wheel and the source distribution into DIRECTORY/dist, and the wheel's bill of materials
beside it. Then it does what a user does, in a shell where nothing of this tree is on the path: pip
installs from a directory as its index, a query dies behind a decision of the build before and is
finished by this one, the README's commands run, and the demo. Every command is printed; the first
that fails ends the whole.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from eos_sink.kafka.deadline import Deadline
from eos_sink.version import VERSION
from eos_sink_lab.testing import start_kafka
from eos_sink_lab.testing.faults import FaultPoint, Faults, Strike
from eos_sink_lab.testing.network_links import free_ports
from eos_sink_lab.testing.process_tree import ProcessTree
from eos_sink_lab.testing.topic_audit import Checker, Source, json_field
from eos_sink_lab.testing.waiting import wait_until
from proof.matrix.environments import build_wheel, install
from tests.snippets import ROOT, snippets_of

_BEFORE = "0.0.1"
"""The number that the build before gets, so that pip takes it for another one."""
_DECIDED = FaultPoint.COMMITTER_WRITE_AFTER
_PATIENCE_S = 600.0
# Settings of whoever runs this, which a user does not have.
_OWN = re.compile(r"(PYTHON|EOS_|SPARK_|PYSPARK_|PIP_|JAVA_HOME|VIRTUAL_ENV)")


def build(there: Path) -> Path:
    """Build the files, check what PyPI will show of them, and list what the wheel brings."""
    wheel = build_wheel(there)
    _python("twine", "check", "--strict", *sorted(map(str, wheel.parent.iterdir())))
    bill = there / "eos_sink.cdx.json"
    with tempfile.TemporaryDirectory() as bare:
        python = install(Path(bare, "venv"), Path(sys.executable), wheel)
        options = ["--mc-type", "library", "--output-reproducible", "-o", str(bill)]
        _python("cyclonedx_py", "environment", str(python), *options)
    named = {part["name"]: part["version"] for part in json.loads(bill.read_text())["components"]}
    assert named["eos-sink"] == VERSION, named
    return wheel


def build_before(there: Path, revision: str) -> Path:
    """Build the wheel of an earlier revision, under a lower number."""
    tree = there / "tree"
    tree.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    for name, number in (
        ("setup.cfg", r"(?m)(?<=^version = ).*"),
        ("eos_sink/version.py", r'(?<=VERSION = ")[^"]*'),
    ):
        file = tree / name
        file.write_text(re.sub(number, _BEFORE, file.read_text()))
    return build_wheel(there, tree)


def find_before() -> str:
    """Return the tag before this commit, or the commit before."""
    tag = ["git", "describe", "--tags", "--abbrev=0", "HEAD^"]
    found = subprocess.run(tag, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "HEAD^"


class User:
    """Types commands into a shell, in a directory and a virtual environment of their own.

    Args:
        home: an empty directory.
        indexes: where pip finds the sink.
    """

    def __init__(self, home: Path, *indexes: Path) -> None:
        self.home = home
        environ = {name: value for name, value in os.environ.items() if not _OWN.match(name)}
        self._environ = environ | {
            "PATH": f"{home}/venv/bin:{environ['PATH']}",
            "PIP_FIND_LINKS": " ".join(map(str, indexes)),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)

    def types(self, command: str, exit_code: int = 0) -> str:
        """Run a command to its end; return what it prints."""
        _tell(f"$ {command}")
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=self.home,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        if done.returncode != exit_code:
            sys.exit(
                f"It ended with {done.returncode}, not {exit_code}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout + done.stderr

    @contextmanager
    def leaves_running(self, command: str, **environ: str) -> Iterator[ProcessTree]:
        """Start a command, which is killed with all of its processes at the end."""
        _tell(f"$ {command} &")
        words = ["bash", "-ec", command]
        log = self.home / "log"
        running = ProcessTree(words, log, {**self._environ, **environ}, cwd=self.home)
        try:
            yield running
        finally:
            running.kill()


class Readme:
    """The README's commands and program, for a Kafka on another port.

    Attributes:
        kafka: the command that starts it.
        submit: those that run the program.
        looks: those that look at what it has written.
    """

    def __init__(self, bootstrap: str, user: User) -> None:
        def own(text: str) -> str:
            there = text.replace("localhost:9092", bootstrap)
            return there.replace("/tmp/sensors-checkpoint", f"{user.home}/checkpoint")  # noqa: S108

        blocks = [block for block in snippets_of(ROOT / "README.md") if block.language == "sh"]
        (program,) = (s for s in snippets_of(ROOT / "README.md") if s.file_name == "sensors.py")
        installs, submits, looks = (block.commands for block in blocks[:3])
        self.kafka = f"{installs[1]} --port {bootstrap.rpartition(':')[2]}"
        self.submit = "\n".join(submits)
        self.looks = [own(command) for command in looks]
        self._user, self._program, self._bootstrap = user, own(program.text), bootstrap

    def save_program(self) -> None:
        (self._user.home / "sensors.py").write_text(self._program)

    def save_faulty_program(self) -> None:
        """Save it with fault points, and without inlined rows: these need no end to be visible."""
        made, option = "getOrCreate()\n", '.option("topic", "sensors")'
        register = "from eos_sink.testing import FaultyDataSource\nspark.dataSource.register("
        text = self._program.replace(made, f"{made}{register}FaultyDataSource)\n")
        text = text.replace(option, f'{option}.option("eos.inline.bytes", "0")')
        assert text.count("FaultyDataSource") + text.count("inline.bytes") == 3
        (self._user.home / "sensors.py").write_text(text)

    @contextmanager
    def runs(self, **environ: str) -> Iterator[None]:
        """Run the program, from when a reader sees rows of this run; it is killed at the end."""
        with closing(Checker(Source(self._bootstrap, "sensors"), json_field("number"))) as rows:
            while rows.look(1.0):
                pass
            with self._user.leaves_running(self.submit, **environ) as running:

                def is_seen() -> bool:
                    if not running.alive:
                        sys.exit("\n".join(["The program ended.", *running.read_log()[-20:]]))
                    return bool(rows.look(0.2))

                wait_until(is_seen, Deadline(_PATIENCE_S), "rows are visible")
                yield

    def look(self) -> None:
        for command in self.looks:
            _tell(self._user.types(command))


def install_as_user(user: User) -> None:
    """Install the sink, and with the command that a message gives, what its demo needs."""
    user.types(f"pip install eos-sink=={VERSION}")
    user.types("eos-sink --help")
    said = user.types("eos-sink demo", exit_code=2)
    (command,) = re.findall(r"pip install \S+", said)
    user.types(command)


def upgrade(user: User) -> None:
    """Let the build before decide a batch, and this one finish it."""
    user.types(f"pip install eos-sink=={_BEFORE}")
    with start_kafka() as kafka:
        kafka.create_topic("sensors", partitions=4)
        readme = Readme(kafka.bootstrap_servers, user)
        readme.save_faulty_program()
        faults = Faults(user.home / "faults")
        with readme.runs(**faults.environment):
            faults.arm(_DECIDED, Strike.KILL_ALL)
            faults.wait_fired(_DECIDED, _PATIENCE_S)
        user.types(f"pip install --upgrade eos-sink=={VERSION}")
        status = f"eos-sink status --bootstrap-server {kafka.bootstrap_servers} --json"
        (query,) = json.loads(user.types(f"{status} || true"))["queries"]
        assert query["open_decided"] > 0, query
        _tell(f"batch {query['batch']}: {query['open_decided']} decided transactions are open")
        readme.save_program()
        with readme.runs():
            readme.look()


def follow_readme(user: User) -> None:
    """Run its commands, and kill its program once."""
    (port,) = free_ports(1)
    readme = Readme(f"localhost:{port}", user)
    readme.save_program()
    with user.leaves_running(readme.kafka) as kafka:
        started = "Kafka runs at"
        wait_until(
            lambda: not kafka.alive or started in "\n".join(kafka.read_log()),
            Deadline(_PATIENCE_S),
            "Kafka runs",
        )
        for _ in range(2):
            with readme.runs():
                readme.look()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rehearse", description="See `make`.")
    parser.add_argument("directory", type=Path, help="takes the files that are built")
    parser.add_argument(
        "--before", default=find_before(), metavar="REVISION", help="default: %(default)s"
    )
    given = parser.parse_args()
    # What runs is ended in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wheel = build(given.directory.absolute())
    with tempfile.TemporaryDirectory() as scratch:
        before = build_before(_new(scratch, "before"), given.before)
        user = User(_new(scratch, "user"), wheel.parent, before.parent)
        install_as_user(user)
        upgrade(user)
        (user.home / "checkpoint").rename(user.home / "checkpoint-before")
        follow_readme(user)
        _tell(user.types("eos-sink demo --rows 50000 --kills 1"))
        user.types(
            f"pip install --force-reinstall --no-deps --no-binary eos-sink eos-sink=={VERSION}"
        )
        assert VERSION in user.types("eos-sink --version")
    _tell(f"Rehearsed: {', '.join(str(file) for file in sorted(wheel.parent.iterdir()))}")
    return 0


def _new(scratch: str, name: str) -> Path:
    there = Path(scratch, name)
    there.mkdir()
    return there


def _python(module: str, *words: str) -> None:
    _tell(f"$ python -m {module} {' '.join(words)}")
    subprocess.run([sys.executable, "-m", module, *words], check=True)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
