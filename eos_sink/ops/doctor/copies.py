"""Whether a topic takes acknowledged rows, now and after a broker has failed."""

from __future__ import annotations

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.finding import Check, Finding, Findings, failure, unseen, warning

MIN_IN_SYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"

_SOME = 5


def judge_copies(
    check: Check, topic: TopicDescription, brokers: int, commands: Commands
) -> Findings:
    """What is wrong with its copies; nothing if all is well.

    Args:
        check: what it is a part of.
        topic: as its brokers describe it.
        brokers: how many there are.
        commands: for the remedies.
    """
    name = topic.name
    leaderless = [n for n, part in topic.partitions.items() if part.leader < 0]
    if leaderless:
        yield failure(
            check,
            f"{name} has no leader in partition {_some(leaderless)}",
            "Nothing can be written to it or read from it there.",
            f"Bring its brokers back: {commands.show_topic(name)} --unavailable-partitions",
        )
    if isinstance(topic.settings, Unseen):
        yield unseen(check, f"{MIN_IN_SYNC} of {name}", topic.settings, commands)
        yield from _behind(check, topic, commands)
        return
    needed = int(topic.settings.get(MIN_IN_SYNC, "1"))
    if needed > topic.replicas:
        yield failure(
            check,
            f"{name} has {counted(topic.replicas)} and {MIN_IN_SYNC}={needed}",
            "It takes no row with acks=all, which transactions write with: every batch fails.",
            commands.set_topic(name, {MIN_IN_SYNC: max(1, topic.replicas - 1)}),
        )
    else:
        short = [n for n, p in topic.partitions.items() if p.in_sync < needed]
        if short:
            least = min(topic.partitions[n].in_sync for n in short)
            yield failure(
                check,
                f"{name} has {counted(least)} in sync in partition {_some(short)}, and "
                f"{MIN_IN_SYNC}={needed}",
                "It takes no row with acks=all there: a batch waits, then fails.",
                f"Bring the missing brokers back: {commands.show_topic(name)} "
                "--under-min-isr-partitions",
            )
        else:
            yield from _behind(check, topic, commands)
        yield from _after_a_failure(check, topic, needed, brokers, commands)
    if topic.settings.get(UNCLEAN) == "true":
        yield warning(
            check,
            f"{name} has {UNCLEAN}=true",
            "A copy that is behind may become the leader: rows that were committed are gone then.",
            commands.set_topic(name, {UNCLEAN: "false"}),
        )


def _behind(check: Check, topic: TopicDescription, commands: Commands) -> Findings:
    behind = [n for n, part in topic.partitions.items() if part.in_sync < part.replicas]
    if behind:
        yield warning(
            check,
            f"{topic.name} has copies out of sync in partition {_some(behind)}",
            "Rows are taken, but fewer brokers may fail than it has copies for.",
            f"Bring the missing brokers back: {commands.show_topic(topic.name)} "
            "--under-replicated-partitions",
        )


def _after_a_failure(
    check: Check, topic: TopicDescription, needed: int, brokers: int, commands: Commands
) -> Findings:
    name, copies = topic.name, topic.replicas
    if copies == 1:
        what = f"{name} has one copy" + (", as there is one broker" if brokers == 1 else "")
        yield _few(check, what, "What it holds is lost with that broker.")
    elif needed == 1 and copies >= 3:
        yield warning(
            check,
            f"{name} has {counted(copies)} and {MIN_IN_SYNC}=1",
            "A row that only one broker holds counts as written, and is lost with it.",
            commands.set_topic(name, {MIN_IN_SYNC: 2}),
        )
    elif needed == copies:
        yield warning(
            check,
            f"{name} has {counted(copies)} and {MIN_IN_SYNC}={needed}",
            "It takes no row while one of its brokers is away.",
            commands.set_topic(name, {MIN_IN_SYNC: copies - 1}),
        )
    elif copies == 2:
        yield _few(
            check,
            f"{name} has 2 copies and {MIN_IN_SYNC}=1",
            "While one of its brokers is away, a row that only the other holds counts as written.",
        )


def _few(check: Check, what: str, meaning: str) -> Finding:
    return warning(
        check, what, meaning, "Give it three copies: kafka-reassign-partitions, three brokers."
    )


def counted(copies: int) -> str:
    return "1 copy" if copies == 1 else f"{copies} copies"


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_SOME]))
    return f"{shown} and {len(numbers) - _SOME} more" if len(numbers) > _SOME else shown
