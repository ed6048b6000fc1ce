"""The charts of the pages: boxes, and arrows between them."""

from __future__ import annotations

from dataclasses import dataclass

from tools.diagrams import Kind


@dataclass(frozen=True)
class Box:
    left: int
    top: int
    width: int
    height: int
    label: str
    kind: Kind = Kind.PLAIN


@dataclass(frozen=True)
class Arrow:
    start: tuple[int, int]
    end: tuple[int, int]
    label: str = ""


@dataclass(frozen=True)
class Chart:
    title: str
    description: str
    size: tuple[int, int]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def _permissions() -> Chart:
    """The driver at the left, the tasks at the right, what they use in Kafka between them."""
    rows = (
        ("topics of the rows", "Write, Read", "Write", Kind.COMMITTED),
        ("transactional ids with the prefix", "Write", "Write", Kind.COMMITTED),
        ("the query's group", "Read", "Read", Kind.COMMITTED),
        ("decision log", "Read, Write, Create", "Read", Kind.COMMITTED),
        ("topics of the source", "Read", "", Kind.OPEN),
        ("group of the source", "Read", "", Kind.OPEN),
    )
    step, top, side, begin, end = 54, 12, 78, 198, 338
    boxes, arrows = [], []
    for number, (resource, of_driver, of_tasks, kind) in enumerate(rows):
        y = top + number * step
        boxes.append(Box(begin, y, end - begin, 40, resource, kind))
        arrows.append(Arrow((side + 8, y + 22), (begin, y + 22), of_driver))
        if of_tasks:
            arrows.append(Arrow((end + 102, y + 22), (end, y + 22), of_tasks))
    height = top + step * len(rows)
    return Chart(
        "Who uses what in Kafka, with which permission",
        "The driver writes and reads the topics of the rows, writes transactions, is a member of "
        "the query's group, and reads, writes and creates the decision log. Tasks write rows and "
        "transactions, and read the group and the log. With eos.source.group.id the driver also "
        "reads the topics and the group of the source.",
        (526, height),
        (
            Box(8, top, side, height - 2 * top, "driver, and eos-sink resolve", Kind.STEP),
            Box(end + 102, top, side, 4 * step - 14, "tasks", Kind.STEP),
            Box(end + 16, top + 4 * step, 164, 40, "only with eos.source.group.id", Kind.OPEN),
            *boxes,
        ),
        tuple(arrows),
    )


def _stopped() -> Chart:
    """Questions down the left, what to do at the right."""
    again = "start it again"
    rows = (
        ("Is it an error of eos-sink?", "no", f"repair what Spark names, {again}"),
        ("ConfigurationError, ClusterError?", "yes", f"change what the message names, {again}"),
        ("SupersededError, and the newer run is running?", "yes", "leave the newer run running"),
        (
            "OperatorNeededError, and the message names eos-sink resolve?",
            "yes",
            f"compare, choose, {again}",
        ),
        ("OperatorNeededError?", "yes", "do what the message says"),
    )
    step, top, width, right = 74, 12, 160, 204
    boxes, arrows = [], []
    for number, (question, answer, advice) in enumerate(rows):
        y = top + number * step
        boxes.append(Box(8, y, width, 46, question))
        boxes.append(Box(right, y, width, 46, advice, Kind.COMMITTED))
        arrows.append(Arrow((8 + width, y + 23), (right, y + 23), answer))
        other = "yes" if answer == "no" else "no"
        arrows.append(Arrow((8 + width // 2, y + 46), (8 + width // 2, y + step), other))
    y = top + step * len(rows)
    boxes.append(
        Box(8, y, width, 46, f"{again}: what was decided is finished first", Kind.COMMITTED)
    )
    return Chart(
        "My query stopped",
        "Not an error of eos-sink: repair what Spark names and start again. ConfigurationError or "
        "ClusterError: change what the message names and start again. SupersededError while the "
        "newer run is running: leave it running. OperatorNeededError whose message names eos-sink "
        "resolve: compare, choose, start again; another one: do what the message says. All others: "
        "start again.",
        (right + width + 8, y + 58),
        tuple(boxes),
        tuple(arrows),
    )


CHARTS = {"permissions": _permissions(), "stopped": _stopped()}
