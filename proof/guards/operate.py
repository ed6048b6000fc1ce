"""Guards of operators' commands: whose run they may end, and what they know of its process."""

from __future__ import annotations

from proof.guards.guard import always, drop, guard, never, swap

_OPERATOR_RUN = "eos_sink/ops/operator_run.py"
_RESOLVE = "eos_sink/ops/resolve.py"
_PROCESSES = "eos_sink/driver/processes.py"
_PROCESS = "tests/ops/test_processes.py::"
_TAKEN_OVER = "tests/cli/test_resolve.py::test_a_run_that_may_be_alive_has_to_be_taken_over"
_RESOLVED = "integration/test_resolve.py::"
_ELSEWHERE = f"{_RESOLVED}test_from_another_machine_a_run_is_noticed_by_its_group_member[4.3.0]"
_NO_OPERATOR = "the model has no operator"

_ANY_PLACE = always(_PROCESSES, "_is_local", "all(run.place)")

GUARDS = (
    guard(
        "resolve asks whether a run may be alive",
        "A choice of an operator ends a run of the query only if the operator says so.",
        drop("eos_sink/cli/resolve_command.py", "run", "check_driver(...)"),
        _ELSEWHERE,
        outside=_NO_OPERATOR,
    ),
    guard(
        "abort asks whether a run may be alive",
        "`transactions abort` ends a run of the query only if the operator says so.",
        drop("eos_sink/cli/transactions_command.py", "_end", "check_driver(...)"),
        "tests/cli/test_operate.py::test_a_run_that_may_be_alive_is_not_replaced_by_mistake",
        outside=_NO_OPERATOR,
    ),
    guard(
        "a listed member may be a run",
        "From another machine the group's member is all that shows that a run is alive.",
        never(_OPERATOR_RUN, "may_be_alive", "bool(hosts) and not (run and run.tool)"),
        f"{_TAKEN_OVER}[elsewhere]",
        f"{_TAKEN_OVER}[ended here]",
        _ELSEWHERE,
        outside=_NO_OPERATOR,
    ),
    guard(
        "an unreadable group may have a member",
        "A group that the principal may not describe does not count as empty.",
        never(_OPERATOR_RUN, "may_be_alive", "hosts is None"),
        f"{_TAKEN_OVER}[group unreadable]",
        f"{_TAKEN_OVER}[after a command]",
        outside=_NO_OPERATOR,
    ),
    guard(
        "a member wins over a dead process",
        "A new run joins the group before its first record; the one that wrote last may be dead.",
        swap("eos_sink/ops/status.py", "driver", "not self.hosts", "self.dead or not self.hosts"),
        "tests/ops/test_observer.py::test_a_member_wins_over_a_dead_process",
        outside=_NO_OPERATOR,
    ),
    guard(
        "no abort is advised against a member",
        "The command that an alert prints would end a run that has just begun.",
        always("eos_sink/ops/alerts.py", "_check_undecided", "status.driver is Driver.GONE"),
        "tests/ops/test_alerts.py::test_nothing_is_aborted_against_a_member_that_is_listed",
        outside=_NO_OPERATOR,
    ),
    guard(
        "numbers of processes belong to one PID namespace",
        "A sidecar has the driver's host name, but other numbers of processes.",
        _ANY_PLACE
        + swap(
            _PROCESSES, "_is_local", "run.place == _place()", "run.host == socket.gethostname()"
        ),
        f"{_PROCESS}test_in_another_pid_namespace_nothing_is_known_of_the_driver[False]",
        f"{_PROCESS}test_in_another_pid_namespace_nothing_is_known_of_the_driver[True]",
        "integration/test_operate.py::test_a_sidecar_in_another_pid_namespace_does_not_take_a_live_driver_for_dead[4.3.0]",
        outside=_NO_OPERATOR,
    ),
    guard(
        "an unknown place is another one",
        "Two processes of which neither knows its PID namespace may be in different ones.",
        _ANY_PLACE,
        f"{_PROCESS}test_without_proc_nothing_is_known_of_a_process",
        outside=_NO_OPERATOR,
    ),
    guard(
        "planners of one run share a PID namespace",
        "The first process of each container has number 1.",
        swap(
            "eos_sink/protocol/model.py",
            "is_sibling_of",
            "(self.place, self.session) == (other.place, other.session)",
            "(self.host, self.session) == (other.host, other.session)",
        ),
        f"{_PROCESS}test_a_process_of_another_place_is_no_sibling[pid_namespace]",
        outside="in the model a run has one planner process",
    ),
    guard(
        "a choice does not change an earlier one unasked",
        "An operator who chooses after another one learns what the next start does.",
        never(_RESOLVE, "_find_doubts", "override.visible or override.lost"),
        "tests/ops/test_resolve.py::test_a_choice_after_another_one_is_not_told_that_none_is_needed",
        outside=_NO_OPERATOR,
    ),
    guard(
        "what is decided and open is committed before it is accepted",
        "After the choice no start commits it, and its rows are lost.",
        never(_RESOLVE, "write_choice", "decision.override.accepted"),
        "tests/ops/test_resolve.py::test_what_is_decided_is_committed_before_it_is_accepted_or_dropped[Choice.ACCEPT]",
        "tests/ops/test_resolve.py::test_what_is_decided_and_not_seen_is_neither_accepted_nor_dropped[Choice.ACCEPT]",
        outside=_NO_OPERATOR,
    ),
    guard(
        "nothing is dropped without a trace",
        "On another cluster a command creates no log, and does not say that it has helped.",
        never(_RESOLVE, "apply_choice", "if evidence.untraced:"),
        "tests/ops/test_resolve.py::test_nothing_is_dropped_where_there_is_no_trace_of_the_query",
        outside=_NO_OPERATOR,
    ),
)
