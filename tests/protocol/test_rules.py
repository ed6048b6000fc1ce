"""Every branch of every verdict: what follows from what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kafka import errors as kafka_errors

from eos_sink.errors import (
    CommitFailedError,
    ConfigurationError,
    EosSinkError,
    OperatorNeededError,
)
from eos_sink.identity import QueryNames
from eos_sink.kafka import error_codes
from eos_sink.kafka.error_codes import Answer, classify_control_answer
from eos_sink.messages import Reason
from eos_sink.protocol.model import (
    BatchId,
    DeadLetters,
    Decision,
    Inlined,
    LogRecord,
    Numbering,
    Override,
    Plan,
    PlanToken,
    Prepared,
    Route,
    RowDigest,
    SourcePosition,
    TaskReport,
)
from eos_sink.protocol.rules import (
    MAX_STREAMS,
    Assignment,
    Replay,
    Role,
    assign,
    check_same_topics,
    check_streams,
    check_unrecorded,
    check_vote,
    compare,
    in_doubt,
    longest_session_ms,
    select_undecided,
    vote_margin_ms,
)
from eos_sink.protocol.values import Position, Transaction, TransactionState, TransactionStatus
from eos_sink.protocol.written import WrittenNumbers

NAMES = QueryNames("p-", "q-0123456789")
BATCH = BatchId("stream", 5)
TOKEN = PlanToken(NAMES, 7, Position("log", 0, 3), b"member")
TALLIES = {0: RowDigest(2, 20, 111), 1: RowDigest(), 2: RowDigest(3, 30, 222)}
PREPARED = {
    number: Prepared(number, 100 + number, 4, TALLIES[number], Position("t", number, 9))
    for number in (0, 2)
}
DECISION = Decision(BATCH, 1, 3, RowDigest.total(list(TALLIES.values())), tuple(PREPARED.values()))
NOT_OPEN = [status for status in TransactionStatus if status is not TransactionStatus.ONGOING]
T0, T2 = DECISION.transactions(NAMES)


def state(
    transaction: Transaction,
    status: TransactionStatus = TransactionStatus.ONGOING,
    started_ms: int = 0,
    timeout_ms: int = 60_000,
) -> TransactionState:
    return TransactionState(transaction, status, started_ms, timeout_ms)


# --- Kafka's error codes


@pytest.mark.parametrize(
    ("code", "name", "answer"),
    [
        (0, "NoError", Answer.DONE),
        (7, "RequestTimedOutError", Answer.RETRY),
        (14, "CoordinatorLoadInProgressError", Answer.RETRY),
        (15, "CoordinatorNotAvailableError", Answer.REDISCOVER),
        (16, "NotCoordinatorError", Answer.REDISCOVER),
        (31, "ClusterAuthorizationFailedError", Answer.DENIED),
        (47, "InvalidProducerEpochError", Answer.REFUSED),
        (48, "InvalidTxnStateError", Answer.REFUSED),
        (49, "InvalidProducerIdMappingError", Answer.REFUSED),
        (51, "ConcurrentTransactionsError", Answer.RETRY),
        (53, "TransactionalIdAuthorizationFailedError", Answer.DENIED),
        (90, "ProducerFencedError", Answer.REFUSED),
        (105, "TransactionalIdNotFoundError", Answer.REFUSED),
    ],
)
def test_a_listed_code_has_its_answer(code: int, name: str, answer: Answer) -> None:
    assert kafka_errors.for_code(code).__name__ == name
    assert classify_control_answer(code) is answer


def test_every_listed_code_is_tested_above_and_any_other_means_stop() -> None:
    listed = {0, 7, 14, 15, 16, 31, 47, 48, 49, 51, 53, 90, 105}
    known = {code for code, row in error_codes.CODES.items() if row.control is not Answer.STOP}
    assert known == listed
    for code in set(range(-1, 150)) - listed:
        assert classify_control_answer(code) is Answer.STOP


# --- what may be aborted


def test_open_transactions_that_the_decision_does_not_name_are_undecided() -> None:
    later = replace(T0, epoch=T0.epoch + 1)
    other_slot = Transaction(NAMES.task(0, 0), 77, 0)
    states = [state(later), state(other_slot), state(T2)]
    assert select_undecided(NAMES, states, DECISION) == [later, other_slot]
    assert select_undecided(NAMES, states, None) == [later, other_slot, T2]


@pytest.mark.parametrize(
    "never",
    [
        *(state(T0, status) for status in NOT_OPEN),
        *(
            state(Transaction(name, 1, 0))
            for name in (NAMES.driver, "p-other-0123456789-0-0", "p-q-0123456789-2-0")
        ),
    ],
)
def test_what_is_not_open_the_driver_and_other_queries_are_never_listed(
    never: TransactionState,
) -> None:
    assert select_undecided(NAMES, [never], None) == []


# --- what a task does


def plan(decision: Decision | None = DECISION, *lost: int) -> Plan:
    return Plan(TOKEN, decision, frozenset(lost))


DOUBTFUL = replace(plan(), doubtful=frozenset({2}))
OF_TASK_AND_DRIVER = replace(DECISION, prepared=(PREPARED[0],), inlined=(Inlined(2, TALLIES[2]),))


def in_stream(number: int, stream: str = "stream") -> BatchId:
    return BatchId(stream, number)


@pytest.mark.parametrize(
    ("known", "batch", "partition", "expected"),
    [
        (plan(None), BATCH, 0, Assignment(Role.WRITE, 0)),
        # A new batch takes the other slot than the decision, and one of a new stream slot 0.
        *((plan(), in_stream(n), 0, Assignment(Role.WRITE, 0)) for n in (6, 7, 60)),
        (plan(replace(DECISION, slot=0)), in_stream(6), 0, Assignment(Role.WRITE, 1)),
        *((plan(), in_stream(n, "new"), 0, Assignment(Role.WRITE, 0)) for n in (0, 4, 5, 6)),
        (DOUBTFUL, in_stream(6), 0, Assignment(Role.WRITE, 0)),
        # A replay writes lost partitions only, and under the same slot; or all, if all are lost.
        (plan(DECISION, 2), BATCH, 2, Assignment(Role.WRITE, 1)),
        (plan(DECISION, 2), BATCH, 0, Assignment(Role.COUNT, 1)),
        (plan(DECISION), BATCH, 2, Assignment(Role.COUNT, 1)),
        *((plan(DECISION, 0, 2), BATCH, n, Assignment(Role.WRITE, 1)) for n in (0, 1, 3, 300)),
        (plan(OF_TASK_AND_DRIVER, 0), BATCH, 3, Assignment(Role.COUNT, 1)),
    ],
)
def test_a_task_writes_or_counts(
    known: Plan, batch: BatchId, partition: int, expected: Assignment
) -> None:
    assert assign(known, batch, partition) == expected


@pytest.mark.parametrize(
    ("known", "batch", "data"),
    [
        *((plan(), in_stream(n), {"partitions": [0, 2], "rows": 5, "decided": 5}) for n in (0, 4)),
        *((plan(DECISION, 2), each, {}) for each in (in_stream(6), in_stream(5, "new"))),
        *((DOUBTFUL, each, {}) for each in (BATCH, in_stream(6, "new"))),
        # A doubt beside a loss does not let the loss pass.
        (replace(DOUBTFUL, lost=frozenset({0})), in_stream(6), {"partitions": [0], "rows": 2}),
    ],
)
def test_a_batch_that_the_decision_does_not_let_pass_stops(
    known: Plan, batch: BatchId, data: dict[str, object]
) -> None:
    with pytest.raises(OperatorNeededError) as stop:
        assign(known, batch, 0)
    of = batch.batch if "decided" in data else 5
    assert stop.value.data == {"batch": of, "partitions": [2], "rows": 3, **data}


@pytest.mark.parametrize("number", [0, 3, 4])
@pytest.mark.parametrize("decision", [DECISION, None])
def test_each_batch_of_a_stream_that_another_one_has_followed_is_refused_by_name(
    decision: Decision | None, number: int
) -> None:
    retired = replace(plan(decision), retired=(BatchId("first", 3), BatchId("second", 9)))
    with pytest.raises(ConfigurationError) as stop:
        assign(retired, BatchId("first", number), 0)
    assert stop.value.data["follower"] == (decision and "stream")
    follower = "stream stream" if decision else "another stream"
    assert f"the checkpoint of {follower}" in stop.value.remedy
    assert assign(retired, BatchId("stream", 6), 0).role is Role.WRITE
    assert assign(retired, BatchId("new", 0), 0).role is Role.WRITE


def test_a_stream_that_has_gone_on_under_another_identity_is_refused_by_name() -> None:
    retired = replace(plan(), retired=(DECISION.batch,))
    for number in (5, 6):
        with pytest.raises(ConfigurationError, match="gone on under another identity"):
            assign(retired, BatchId("stream", number), 0)


@pytest.mark.parametrize("numbering", [Numbering.VERSION, Numbering.ONCE])
@pytest.mark.parametrize("query", [Numbering.STREAM, Numbering.FOREACH])
def test_a_query_and_single_writes_do_not_share_an_identity(
    numbering: Numbering, query: Numbering
) -> None:
    write, batch = (BatchId.numbered_by(each, "s", 5) for each in (numbering, query))
    for decided, now in ((write, batch), (batch, write)):
        with pytest.raises(ConfigurationError, match="the same eos"):
            assign(plan(replace(DECISION, batch=decided)), now, 0)


def test_one_stream_more_than_a_record_keeps_is_refused() -> None:
    every = tuple(BatchId(f"s-{n}", 0) for n in range(MAX_STREAMS))
    new, full = BatchId("new", 0), LogRecord(9, DECISION, "w", every)
    check_streams(full, BatchId("stream", 6), has_group=True)
    check_streams(LogRecord(9, DECISION, "w", every[1:]), new, has_group=True)
    with pytest.raises(ConfigurationError):
        check_streams(full, new, has_group=True)
    # What is known of the position comes first.
    followed = replace(full, source=SourcePosition("g", DECISION.batch, {}, {}))
    with pytest.raises(ConfigurationError, match=r"only with eos\.source"):
        check_streams(followed, new, has_group=False)


@pytest.mark.parametrize("stale", [True, False])
@pytest.mark.parametrize("has_group", [True, False])
@pytest.mark.parametrize("batch", [BatchId("stream", 6), BatchId("new", 0)])
# A first position has no decision yet.
@pytest.mark.parametrize("decision", [DECISION, None])
def test_a_new_stream_without_the_group_stops_where_the_position_is_known(
    decision: Decision | None, batch: BatchId, *, has_group: bool, stale: bool
) -> None:
    known = SourcePosition("g", DECISION.batch, {("in", 0): 1}, {("in", 0): 2}, stale=stale)
    record = LogRecord(9, decision, "w", source=known)
    if has_group or stale or batch.stream == "stream":
        check_streams(record, batch, has_group=has_group)
    else:
        with pytest.raises(ConfigurationError, match=r"only with eos\.source"):
            check_streams(record, batch, has_group=has_group)


# --- which rule comes first


def written(decision: Decision | None, *numbers: int) -> Plan:
    ranges = tuple((number, number) for number in numbers)
    return replace(plan(decision), written=WrittenNumbers(ranges, forgotten_below=4))


BY_ONE_RUN = replace(DECISION, spark_run="run")
WRITE = BatchId.numbered_by(Numbering.VERSION, "app", 5)
OF_WRITE = replace(DECISION, batch=WRITE)
OF_COLUMN = replace(DECISION, route=Route(None))
OF_OTHER_DIGEST = replace(DECISION, digest=0)
HIDDEN = replace(plan(DECISION, 0), visible=b"")


@pytest.mark.parametrize(
    ("known", "batch", "expected"),
    [
        (DOUBTFUL, BatchId("stream", 4), Reason.OLD_CHECKPOINT),
        (replace(DOUBTFUL, lost=frozenset({0})), BatchId("new", 0), Reason.IN_DOUBT),
        (replace(DOUBTFUL, lost=frozenset({0})), BATCH, Reason.IN_DOUBT),
        (replace(DOUBTFUL, route=Route(None)), BATCH, Reason.IN_DOUBT),
        (replace(DOUBTFUL, decision=BY_ONE_RUN), BATCH, Role.REFUSE),
        (plan(BY_ONE_RUN), BATCH, Role.COUNT),
        (HIDDEN, BATCH, Role.COMPLETE),
        (replace(plan(OF_WRITE), retired=(BATCH,)), BATCH, Reason.FOLLOWED),
        (written(None, 5), BATCH, Role.WRITE),
        (written(None, 5), WRITE, Role.SKIP),
        (written(None, 3), replace(WRITE, batch=3), Role.SKIP),
        (written(None, 5), replace(WRITE, batch=3), Reason.FORGOTTEN_NUMBER),
        (written(OF_WRITE), replace(WRITE, batch=4), Role.WRITE),
        # What is visible goes with what is lost.
        (replace(plan(DECISION, 0), route=Route("t")), BATCH, Reason.OTHER_ROUTE),
        (replace(plan(OF_COLUMN, 0), route=Route(None, "letters")), BATCH, Reason.OTHER_ROUTE),
        (replace(plan(OF_COLUMN, 0), route=Route(None)), BATCH, Role.WRITE),
        (replace(plan(OF_COLUMN, 0, 2), route=Route(None, "letters")), BATCH, Role.WRITE),
        (replace(plan(OF_COLUMN, 0, 2), route=Route("t")), BATCH, Reason.OTHER_ROUTE),
        (replace(plan(OF_COLUMN), route=Route(None, "letters")), BATCH, Role.COUNT),
        (replace(plan(OF_COLUMN), route=Route("t")), BATCH, Reason.OTHER_ROUTE),
        # Neither falsely other rows nor a comparison of nothing.
        (replace(DOUBTFUL, decision=OF_OTHER_DIGEST), BATCH, Reason.IN_DOUBT),
        (plan(OF_OTHER_DIGEST), BATCH, Reason.OTHER_DIGEST),
        (plan(OF_OTHER_DIGEST, 0), BATCH, Reason.OTHER_DIGEST),
        (plan(OF_OTHER_DIGEST, 0, 2), BATCH, Reason.OTHER_DIGEST),
        (plan(OF_OTHER_DIGEST), BatchId("stream", 6), Role.WRITE),
        (plan(replace(OF_OTHER_DIGEST, override=Override(accepted=True))), BATCH, Role.COUNT),
    ],
)
def test_the_first_rule_that_holds_tells(known: Plan, batch: BatchId, expected: object) -> None:
    run = "run" if known.decision is not BY_ONE_RUN or known.doubtful else "another"
    if isinstance(expected, Role):
        assert assign(known, batch, 0, run).role is expected
        return
    with pytest.raises(EosSinkError) as raised:
        assign(known, batch, 0, run)
    assert raised.value.stop
    assert raised.value.stop[0] is expected


def test_a_frame_that_is_not_of_a_query_is_no_second_one() -> None:
    assert assign(plan(), BATCH, 0, "").role is Role.COUNT


@pytest.mark.parametrize(
    ("again", "topic", "letters", "expected"),
    [
        ({"t"}, "t", (), Reason.TOPIC_MADE_AGAIN),
        ({"t"}, None, (), Reason.IN_DOUBT),
        ({"t"}, "t", (DeadLetters(2, 1),), Reason.IN_DOUBT),
        ({"t"}, "t", (DeadLetters(0, 1),), Reason.TOPIC_MADE_AGAIN),
        ({"u"}, "t", (), Reason.IN_DOUBT),
        (set(), "t", (), Reason.IN_DOUBT),
    ],
)
def test_a_doubt_about_a_topic_that_was_made_again_says_so(
    again: set[str], topic: str | None, letters: tuple[DeadLetters, ...], expected: object
) -> None:
    elsewhere = replace(PREPARED[0], witness=Position("other", 0, 9))
    decision = replace(
        DECISION,
        prepared=(elsewhere, PREPARED[2]),
        route=Route(topic),
        dead_letters=letters,
    )
    error = in_doubt(decision, frozenset({2}), frozenset(again))
    assert error.stop
    assert error.stop[0] is expected
    assert ("created again" in str(error)) == bool(again)
    assert "other" not in str(error)


# --- the topics of a batch


def test_rows_are_in_the_topics_that_have_their_names_now() -> None:
    check_same_topics([("t", "1"), ("new", "")], {"t": "1", "u": "2", "new": ""})
    check_same_topics([("gone", "")], {})
    for now in ({"t": "2"}, {}):
        with pytest.raises(CommitFailedError, match="t"):
            check_same_topics([("u", "2"), ("t", "1")], {"u": "2", **now})


# --- the vote


def vote(*states: TransactionState, now_ms: int = 0, margin_ms: int = 6_000) -> None:
    by_id = {s.transaction.transactional_id: s for s in states}
    check_vote([T0, T2], by_id, now_ms, margin_ms)


@pytest.mark.parametrize("now_ms", [0, 53_999, 54_000])
def test_all_open_and_far_from_their_time_out_pass_the_vote(now_ms: int) -> None:
    vote(state(T0), state(T2), now_ms=now_ms)


@pytest.mark.parametrize(
    ("other", "now_ms", "data"),
    [
        *((state(T2, status), 0, {}) for status in NOT_OPEN),
        *((state(replace(T2, epoch=epoch)), 0, {}) for epoch in (0, T2.epoch + 1)),
        (state(replace(T2, producer_id=1)), 0, {}),
        (state(T2), 54_001, {"left_ms": 5_999}),
        (state(T2), 60_001, {"left_ms": -1}),
    ],
)
def test_one_that_is_not_open_or_near_its_time_out_fails_the_vote(
    other: TransactionState, now_ms: int, data: dict[str, int]
) -> None:
    with pytest.raises(CommitFailedError) as failed:
        vote(state(T0), other, now_ms=now_ms)
    assert failed.value.data == data


@pytest.mark.parametrize(("timeout_ms", "margin_ms"), [(60_000, 6_000), (900_000, 10_000)])
def test_the_margin_is_a_tenth_of_the_time_out_up_to_ten_seconds(
    timeout_ms: int, margin_ms: int
) -> None:
    assert vote_margin_ms(timeout_ms) == margin_ms


# --- replays


def report(partition: int, digest: RowDigest, *, rewritten: bool = False) -> TaskReport:
    prepared = Prepared(partition, 200, 0, digest, Position("t", 0, 50)) if rewritten else None
    return TaskReport(TOKEN, BATCH, partition, 1, True, digest, prepared)


def reports(*rewritten: int) -> list[TaskReport]:
    return [report(n, digest, rewritten=n in rewritten) for n, digest in TALLIES.items()]


NONE, ONE, ALL = frozenset[int](), frozenset({2}), frozenset({0, 2})
PARTS = [TALLIES[2], RowDigest(), RowDigest(1, 5, 11), RowDigest(1, 15, 100)]


@pytest.mark.parametrize(
    ("lost", "some", "expected"),
    [
        (NONE, reports(), Replay.SAME),
        # In other partitions.
        (NONE, [report(0, DECISION.total)], Replay.SAME),
        (NONE, [report(0, TALLIES[2]), report(1, TALLIES[0])], Replay.SAME),
        (ONE, reports(2), Replay.REPAIRS),
        (ALL, reports(0, 2), Replay.REPAIRS),
        (ALL, [report(n, part, rewritten=n != 1) for n, part in enumerate(PARTS)], Replay.REPAIRS),
        (ALL, [report(0, DECISION.total, rewritten=True)], Replay.REPAIRS),
        # The lost partitions have other rows now, or there is another number of partitions.
        (
            ONE,
            [report(0, TALLIES[2]), report(1, TALLIES[1]), report(2, TALLIES[0], rewritten=True)],
            Replay.MOVED,
        ),
        (ONE, [reports(2)[0], reports(2)[2]], Replay.MOVED),
        (ONE, [*reports(2), report(3, RowDigest())], Replay.MOVED),
    ],
)
def test_a_replay_with_the_same_rows_passes_or_has_not_written_the_lost_ones(
    lost: frozenset[int], some: list[TaskReport], expected: Replay
) -> None:
    assert compare(DECISION, lost, some) is expected


@pytest.mark.parametrize(
    ("lost", "some", "partitions"),
    [
        *(
            (NONE, [*reports(), report(3, extra)], [3])
            for extra in (
                RowDigest(1, 0, 0),
                RowDigest(0, 1, 0),
                RowDigest(0, 0, 1),
                RowDigest(-1, 0, 0),
                RowDigest(5, 50, 333),
            )
        ),
        (NONE, [], [0, 2]),
        (ONE, [*reports(2)[:2], report(2, RowDigest(1, 1, 1))], [2]),
        # Others are written again than the lost ones.
        *(
            (ONE, reports(*again), sorted({2, *again}))
            for again in ((), (0,), (0, 2), (1,), (1, 2))
        ),
        *((ALL, reports(*again), None) for again in ((), (0,), (2,), (0, 1, 2))),
    ],
)
def test_a_replay_with_other_rows_or_in_part_stops(
    lost: frozenset[int], some: list[TaskReport], partitions: list[int] | None
) -> None:
    with pytest.raises(OperatorNeededError) as stop:
        compare(DECISION, lost, some)
    assert stop.value.data["batch"] == 5
    if partitions is not None:
        assert (stop.value.data["partitions"], stop.value.data["rows"]) == (partitions, 5)


def test_rows_in_the_decisions_own_transaction_are_visible_whatever_is_lost() -> None:
    whole = [report(0, OF_TASK_AND_DRIVER.total, rewritten=True)]
    assert compare(OF_TASK_AND_DRIVER, frozenset({0}), whole) is Replay.MOVED


def test_a_completion_has_written_exactly_the_lost_rows() -> None:
    by_row, lost = replace(DECISION, by_row=True), frozenset({2})
    new = [report(3, RowDigest(1, 5, 11), rewritten=True), report(4, TALLIES[0])]
    rest = report(5, RowDigest(2, 25, 211), rewritten=True)
    assert compare(by_row, lost, [*new, rest]) is Replay.REPAIRS
    assert compare(DECISION, lost, [*new, rest]) is Replay.MOVED
    twin = [report(3, TALLIES[0], rewritten=True), report(4, TALLIES[2])]
    assert compare(by_row, lost, twin) is Replay.TWINS
    assert compare(by_row, frozenset(), twin) is Replay.SAME


def test_an_accepted_decision_takes_any_replay() -> None:
    accepted = replace(DECISION, override=Override(accepted=True))
    assert compare(accepted, frozenset(), []) is Replay.SAME
    assert compare(accepted, frozenset(), [report(0, RowDigest(9, 9, 9))]) is Replay.SAME


# --- a log without a record


@pytest.mark.parametrize("status", list(TransactionStatus))
def test_only_a_committed_transaction_shows_that_there_was_a_record(
    status: TransactionStatus,
) -> None:
    states = [state(T0, status)]
    if status in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT):
        with pytest.raises(OperatorNeededError) as stop:
            check_unrecorded(NAMES, states)
        assert stop.value.data["transactions"] == [T0.transactional_id]
    else:
        check_unrecorded(NAMES, states)


def test_only_the_querys_own_ids_show_it() -> None:
    committed = TransactionStatus.COMPLETE_COMMIT
    for name in (f"{NAMES.group}-mine", f"{NAMES.group}-0", "other-driver"):
        check_unrecorded(NAMES, [state(Transaction(name, 1, 1), committed)])
    for name in (NAMES.driver, NAMES.task(1, 12)):
        with pytest.raises(OperatorNeededError) as stop:
            check_unrecorded(NAMES, [state(Transaction(name, 1, 1), committed)])
        assert stop.value.data["transactions"] == [name]


# --- the group's session


@pytest.mark.parametrize(
    ("timeout_ms", "allowed_ms", "asked_ms"),
    [
        (900_000, 1_200_000, 1_200_000),
        (900_000, 600_000, 960_000),
        (900_000, 86_400_000, 3_600_000),
        (900_000, None, 1_800_000),
        (2_400_000, None, 2_460_000),
        (7_200_000, None, 3_600_000),
    ],
    ids=[
        "all",
        "too little",
        "more than the client takes",
        "untold",
        "untold and too little",
        "cap",
    ],
)
def test_the_driver_asks_for_the_longest_session_but_for_no_less_than_it_needs(
    timeout_ms: int, allowed_ms: int | None, asked_ms: int
) -> None:
    assert longest_session_ms(timeout_ms, allowed_ms) == asked_ms
