"""`make rehearse` types what the README says; the rehearsal itself takes minutes and a network."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.rehearse import Readme


def test_the_commands_and_the_program_of_the_readme_are_found(tmp_path: Path) -> None:
    user: Any = SimpleNamespace(home=tmp_path)
    readme = Readme("localhost:7", user)
    assert readme.kafka == "python -m eos_sink.testing sensors --port 7"
    assert readme.submit.startswith("export JAVA_HOME=")
    assert readme.submit.endswith(" sensors.py")
    assert [command.split()[:2] for command in readme.looks] == [
        ["eos-sink", "status"],
        ["eos-sink", "verify"],
    ]
    assert all("localhost:7" in command for command in readme.looks)
    readme.save_faulty_program()
    faulty = (tmp_path / "sensors.py").read_text()
    ast.parse(faulty)
    assert f"{tmp_path}/checkpoint" in faulty
    readme.save_program()
    assert "Faulty" not in (tmp_path / "sensors.py").read_text()
