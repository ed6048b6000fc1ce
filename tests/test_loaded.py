"""How much of the package the processes of a batch load. Spark starts new ones with each query."""

from __future__ import annotations

import pickle
from pathlib import Path

from eos_sink.options import parse_options
from tests.imported import imported

ROOT = Path(__file__).parent.parent
SHORT = 12
GIVEN = {"kafka.bootstrap.servers": "nowhere:1", "topic": "out", "eos.id": "q"}
IN_MEMORY = """
import pyarrow, tests.fakes.kafka, tests.protocol.world
from eos_sink.protocol.model import BatchId
world = tests.protocol.world.World([])
kafka = tests.fakes.kafka.FakeKafka(world.cluster)
"""
PLAN = """
plan = Planner(kafka, world.options).plan()
"""
COMMIT = """
from eos_sink.task.writer import TaskWriter
rows = [pyarrow.record_batch({"value": [b"row"]})]
report = TaskWriter(kafka, world.options, plan).write(BatchId("stream", 0), 0, rows)
Committer(kafka, world.options).commit([report])
"""
# A few rows go to the driver, so no broker is needed; others take the native client. The options
# come with the writer, as Spark pickles it.
TASK = f"""
import pickle, pyarrow, eos_sink.spark.data_source, eos_sink.spark.writers
from eos_sink.kafka.cluster import ConfluentKafka
from eos_sink.protocol.model import BatchId, Plan, PlanToken
from eos_sink.protocol.topic_rules import TopicRules
from eos_sink.protocol.values import Position
from eos_sink.task.writer import TaskWriter
options = pickle.loads({pickle.dumps(parse_options(GIVEN))!r})
token, rules = PlanToken(options.names, 0, Position("log", 0, 0), b""), TopicRules(1, 1_000_000)
plan = Plan(token, None, rules={{"out": rules}})
task = TaskWriter(ConfluentKafka(options.cluster), options, plan)
report = task.write(BatchId("stream", 0), 0, [pyarrow.record_batch({{"value": [b"row"]}})])
assert report.inline
import eos_sink.kafka.native.client
"""
SPARK = "import eos_sink.spark.data_source, eos_sink.kafka.cluster\n"
PARSING = f"from eos_sink.options import parse_options\noptions = parse_options({GIVEN})\n"
CLIENTS = "import eos_sink.kafka.transaction_control, eos_sink.kafka.log_reader\n"
# What a real Kafka needs for a plan, and a fake one does not.
CHECKS = """
import eos_sink.kafka.hanging, eos_sink.kafka_config.broker_versions
eos_sink.kafka.cluster.ConfluentKafka(options.cluster).check_settings("q", 60_000)
"""
PLANNER = "from eos_sink.driver.planner import Planner\n"
COMMITTER = "from eos_sink.driver.committer import Committer\n"


def loaded(program: str) -> set[str]:
    """The modules of the sink that a program loads, but for those that only name a package."""
    found = set()
    for name in imported(program):
        path = ROOT / name.replace(".", "/")
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name.startswith("eos_sink.") and len(source.read_text().splitlines()) > SHORT:
            found.add(name)
    return found


def test_a_task_loads_few_modules_and_none_of_the_driver() -> None:
    found = loaded(TASK)
    assert {name.split(".")[1] for name in found}.isdisjoint({"decision_log", "driver", "ops"})
    assert len(found) <= 42, sorted(found)


def test_a_plan_loads_few_modules() -> None:
    imports = IN_MEMORY + PLANNER
    loads = SPARK + PARSING + CLIENTS + CHECKS + PLANNER
    found = loaded(loads) | (loaded(imports + PLAN) - loaded(imports))
    assert len(found) <= 64, sorted(found)


def test_a_commit_loads_few_modules() -> None:
    imports = IN_MEMORY + PLANNER + PLAN + COMMITTER + "import eos_sink.task.writer\n"
    writers = "import eos_sink.spark.writers\n"
    while_running = loaded(imports + COMMIT) - loaded(imports)
    found = loaded(SPARK + CLIENTS + writers + COMMITTER) | while_running
    assert len(found) <= 50, sorted(found)
