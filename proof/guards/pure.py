"""The functions that are mutated, the tests that have to notice, and the mutants that change
nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proof.guards.code import StaleRemovalError
from proof.guards.mutants import Mutant, mutants_of

_RULES = "eos_sink/protocol/rules.py"
_OUTCOME = "eos_sink/protocol/outcome.py"
_MODEL = "eos_sink/protocol/model.py"
_STEPS = "eos_sink/protocol/reconcile.py"
_HANDOVER = "eos_sink/protocol/handover.py"
_SOURCE = "eos_sink/protocol/source_rules.py"
_TOPIC = "eos_sink/protocol/topic_rules.py"
_WRITTEN = "eos_sink/protocol/written.py"
_HANGING = "eos_sink/driver/hanging.py"
_RULE = "tests/protocol/test_rules.py"
_FORMER = "tests/protocol/test_former.py"
_PAGE = "tests/protocol/test_outcome.py::test_the_page_shows_the_function"
_ASKED = "tests/protocol/test_outcome.py::test_a_source_is_asked_after_those_before_it"
_IN_VAIN = "tests/protocol/test_outcome.py::test_a_commit_is_in_vain_in_a_topic_that_was_made_again"
_WORST = "tests/protocol/test_outcome.py::test_a_batch_is_as_its_worst_transaction"
_GOES_ON = (
    "tests/protocol/test_outcome.py::"
    "test_spark_goes_on_after_commit_only_where_it_numbers_the_batches"
)
_RECORD = "tests/protocol/test_records.py"
_DECIDED = "tests/protocol/test_decide.py"
_STEP = ("tests/protocol/test_reconcile.py", "tests/protocol/test_steps.py")
_BEGINS = "tests/protocol/test_handover.py"
_MOVES = "tests/protocol/test_source_rules.py"
_LIMITS = "tests/protocol/test_limits.py"
_ENDED = "tests/decision_log/test_hanging.py"


@dataclass(frozen=True)
class Function:
    """One that decides and does no I/O.

    Attributes:
        file: of the tree.
        name: after that of its class, if it has one.
        tests: run without a broker, as arguments of pytest.
        same: mutants that change nothing, as a part of what they change, and why.
    """

    file: str
    name: str
    tests: tuple[str, ...]
    same: Mapping[str, str] = field(default_factory=dict)

    def mutants(self) -> list[Mutant]:
        """Those that change something.

        Raises:
            StaleRemovalError: there is no such function, or no such mutant that changes nothing.
        """
        every = mutants_of(self.file, self.name)
        for part in self.same:
            kept = [each for each in every if part not in f"{each.name}: {each.change}"]
            if len(kept) == len(every):
                raise StaleRemovalError(f"{self.name} has no mutant {part!r}")
            every = kept
        return every


_SAME_BATCH = "the decided batch itself has another row"

FUNCTIONS = (
    Function(_STEPS, "next_step", _STEP),
    *(
        Function(_STEPS, name, _STEP)
        for name in (
            "Role.fences",
            "Role.fences_always",
            "Role.plans",
            "View.of",
            "View.at",
            "View.listing",
            "View.doing",
        )
    ),
    Function(
        _OUTCOME, "outcome", (_PAGE,), {"if committed is None after if committed": "None is false"}
    ),
    Function(_OUTCOME, "is_in_vain", (_IN_VAIN,)),
    Function(_OUTCOME, "missing", (_ASKED, _PAGE)),
    Function(_OUTCOME, "batch_outcome", (_WORST,)),
    Function(_OUTCOME, "proves_commit", (_GOES_ON,)),
    Function(
        _RULES,
        "assign",
        (_RULE,),
        {
            "if batch.batch in plan.written after": "no number is both written and forgotten",
            "decision.batch.batch >= batch.batch": _SAME_BATCH,
        },
    ),
    Function(_RULES, "in_doubt", (_RULE,)),
    Function(_RULES, "check_former", (_FORMER,)),
    Function(_RULES, "_begins_there", (_FORMER,)),
    Function(_RULES, "moved_checkpoint", (_FORMER,)),
    Function(_RULES, "check_streams", (_RULE,)),
    Function(_RULES, "select_undecided", (_RULE,)),
    Function(_RULES, "check_unrecorded", (_RULE,)),
    Function(_RULES, "check_same_topics", (_RULE,)),
    Function(_RULES, "check_vote", (_RULE,)),
    Function(
        _RULES,
        "compare",
        (_RULE,),
        {"if not lost after if decision.needs": "a completion needs something that is lost"},
    ),
    Function(_RULES, "longest_session_ms", (_RULE,)),
    Function(_RULES, "vote_margin_ms", (_RULE,)),
    Function("eos_sink/protocol/decide.py", "decide", (_DECIDED,)),
    Function(
        _MODEL,
        "LogRecord.next",
        (_RECORD,),
        {"without self.latest in": "a new stream has one before"},
    ),
    Function(_MODEL, "LogRecord.is_new_stream", (_RECORD,)),
    Function(_MODEL, "LogRecord.written_before", (_RECORD,)),
    Function(_MODEL, "SourcePosition.after", (_RECORD,)),
    Function(_MODEL, "SourcePosition.is_beyond", (_MOVES,)),
    Function(_MODEL, "Decision.is_invisible", (_DECIDED,)),
    Function(_MODEL, "Decision.needs_completion", (_DECIDED,)),
    Function(
        _HANDOVER,
        "judge",
        (_BEGINS,),
        {
            "_check_known after _check_topics": "topics are those of a position that is known",
            "_check_visible after _check_begin": "lost ones are given where there is no batch",
            "_check_group: always known": "without a position and a batch it has stopped",
        },
    ),
    Function(_HANDOVER, "Handover.known", (_BEGINS,)),
    Function(_HANDOVER, "Handover.is_new", (_BEGINS,)),
    Function(_HANDOVER, "Handover.needs_logs", (_BEGINS,)),
    Function(_HANDOVER, "Handover.needs_group", (_BEGINS,)),
    Function(_HANDOVER, "first_position", (_BEGINS,)),
    Function(_HANDOVER, "check_replay", (_BEGINS,)),
    Function(_HANDOVER, "check_foreign_group", (_BEGINS,)),
    Function(_HANDOVER, "of_old_topics", (_BEGINS,)),
    Function(_SOURCE, "returns_to_start", (_MOVES,)),
    Function(_SOURCE, "is_new_stream", (_MOVES,)),
    Function(_SOURCE, "has_gone_on", (_MOVES,)),
    Function(_SOURCE, "last_stream", (_MOVES,)),
    Function(_SOURCE, "is_untracked", (_MOVES,)),
    Function(
        _SOURCE,
        "SourceLogs.find_gone",
        (_MOVES, _BEGINS),
        {"_lacks: offset <= first": "at the first offset nothing is gone"},
    ),
    Function(_SOURCE, "SourceLogs.find_cut", (_MOVES, _BEGINS)),
    Function(_SOURCE, "SourceBatch.moves", (_MOVES,)),
    Function(
        _HANGING,
        "was_committed",
        (_ENDED,),
        {
            "without last is None": "without a decision there is no entry",
            "without each.decision in each.decision and each.decision.override": "all have one",
            "if its == mine after if its": "the same epoch is not higher",
            "its.epoch >= mine.epoch": "the same epoch has another row",
        },
    ),
    Function(_HANGING, "last_decision", (_ENDED,)),
    Function("eos_sink/protocol/inline.py", "inline_share", (_LIMITS,)),
    Function("eos_sink/protocol/inline.py", "room_after", (_LIMITS,)),
    Function("eos_sink/protocol/inline.py", "room_after_failure", (_LIMITS,)),
    Function(_TOPIC, "TopicRules.sure_bytes", (_LIMITS,)),
    Function(_TOPIC, "TopicRules.of", (_LIMITS,)),
    Function(_WRITTEN, "WrittenNumbers.__contains__", (_LIMITS,)),
    Function(_WRITTEN, "WrittenNumbers.forgets", (_LIMITS,)),
    Function(_WRITTEN, "WrittenNumbers.add", (_LIMITS,)),
    Function(
        "eos_sink/decision_log/claims.py", "check_claims", ("tests/decision_log/test_claims.py",)
    ),
    Function(
        "eos_sink/kafka/read_back.py",
        "_judge",
        ("tests/kafka/test_visibility.py",),
        {"transaction.epoch) after if first.is_control_batch": "both say the same"},
    ),
    Function(
        "eos_sink/kafka/fetch.py",
        "select_committed",
        ("tests/kafka/test_fetch.py",),
        {
            "always batch.producer_id in producers": "it only decodes more markers",
            "without marker.abort in": "a commit has its marker before the next transaction begins",
        },
    ),
    Function(
        "eos_sink/kafka_config/broker_versions.py",
        "check_verification",
        ("tests/kafka_config/test_broker_versions.py",),
    ),
)
