"""One class per next action; each survives the trip between processes."""

from __future__ import annotations

import json
import pickle

import pytest

from eos_sink import errors
from eos_sink.errors import Action, EosSinkError
from tests.error_kinds import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_itself_again_after_pickling(kind: type[EosSinkError]) -> None:
    error = kind("It broke.", remedy="Mend it.", data={"batch": 3, "partitions": [0, 2]})
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.message, again.remedy, again.data) == (error.message, error.remedy, error.data)
    assert str(again) == str(error) == f"It broke. Mend it. ({error.link()})"
    json.dumps(again.data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", [None, *Action])
def test_an_error_keeps_its_action_after_pickling_and_its_text_does_not_show_it(
    kind: type[EosSinkError], action: Action | None
) -> None:
    error = kind("It broke.", remedy="Mend it.", action=action)
    assert pickle.loads(pickle.dumps(error)).action is error.action is (action or kind._action)
    assert str(error) == str(kind("It broke.", remedy="Mend it."))


def test_the_link_does_not_touch_a_command_on_a_line_of_its_own() -> None:
    error = errors.ClusterError("It may not.", remedy="Grant it:\nkafka-acls --add")
    assert str(error).splitlines()[1:] == ["kafka-acls --add", f"({error.link()})"]


def test_data_may_be_left_out_and_is_a_copy() -> None:
    assert EosSinkError("a", remedy="b").data == {}
    given = {"batch": 1}
    error = EosSinkError("a", remedy="b", data=given)
    given["batch"] = 2
    assert error.data == {"batch": 1}


def test_the_tree_in_the_docstring_is_the_tree_of_the_code() -> None:
    drawn = errors.__doc__ or ""
    for kind in KINDS:
        assert kind.__name__ in drawn
        assert kind is EosSinkError or len(kind.__bases__) == 1


def test_no_error_is_a_kind_of_another_next_action() -> None:
    actions = EosSinkError.__subclasses__()
    assert len(actions) == 7
    phases = {kind for action in actions for kind in action.__subclasses__()}
    assert phases == {errors.ProduceFailedError, errors.CommitFailedError}
    assert {*KINDS} == {EosSinkError, *actions, *phases}


def test_a_failed_write_says_what_failed_also_after_pickling() -> None:
    error = errors.ProduceFailedError(
        "It broke.", remedy="Mend it.", data={"kind": "delivery failed"}
    )
    assert error.kind is errors.FailureKind.DELIVERY_FAILED
    assert pickle.loads(pickle.dumps(error)).kind is error.kind
