"""What this principal may do, beside what the query needs."""

from __future__ import annotations

from eos_sink.kafka.interfaces import TopicDescription, Unseen
from eos_sink.kafka_config.acls import Acl, Permissions, operation_name
from eos_sink.ops.doctor.commands import Commands
from eos_sink.ops.doctor.facts import Facts, Subject
from eos_sink.ops.doctor.finding import Check, Findings, failure, ok, unseen

_FOR = {
    "Write": "The query is refused at its start.",
    "Read": "The query is refused at its start: what a crash leaves open could not be read back.",
}


def judge_permissions(subject: Subject, facts: Facts, commands: Commands) -> Findings:
    """One finding for each resource that something is missing on."""
    missing: dict[str, list[Acl]] = {}
    hidden: list[tuple[str, Unseen]] = []
    needs = Permissions(subject.prefix, subject.log)
    for name in facts.named:
        _of_topic(facts.topics[name], Permissions.topic(name), missing, hidden)
    log = (needs.log_read, needs.log_write)
    _of_topic(facts.topics[subject.log], log, missing, hidden)
    for may, acl in ((facts.may_write, needs.transactions), (facts.may_join, needs.group)):
        if isinstance(may, Unseen):
            hidden.append((str(acl), may))
        elif not may:
            missing[str(acl)] = [acl]
    for acls in missing.values():
        yield failure(
            Check.PERMISSIONS,
            f"this principal lacks {', '.join(map(str, acls))}",
            _FOR.get(acls[0].operation, "The query is refused at its start."),
            *commands.grants(acls),
        )
    for what, why in hidden:
        yield unseen(Check.PERMISSIONS, f"whether this principal has {what}", why, commands)
    if not missing and not hidden:
        topics = ", ".join(facts.named) or "no topic of the query's"
        yield ok(
            Check.PERMISSIONS,
            f"all that is needed on {topics}, {subject.log}, and what starts with {subject.start}",
        )


def _of_topic(
    topic: TopicDescription | Unseen | None,
    needs: tuple[Acl, ...],
    missing: dict[str, list[Acl]],
    hidden: list[tuple[str, Unseen]],
) -> None:
    if topic is None:
        return  # A permission on what is not there yet cannot be asked for.
    if isinstance(topic, Unseen):
        if topic.missing:
            # Each of them brings Describe along, so none is there.
            missing[needs[0].name] = list(needs)
        else:
            hidden.append((str(needs[0]), topic))
        return
    if topic.allowed is None:
        hidden.append((str(needs[0]), Unseen("the brokers do not tell (KIP-430)")))
        return
    allowed = {operation_name(each) for each in topic.allowed}
    lacking = [acl for acl in needs if acl.operation not in allowed]
    if lacking:
        missing[needs[0].name] = lacking
