"""A broker that is too old is recognized by its list of requests."""

from __future__ import annotations

import pytest

from eos_sink.errors import ClusterError
from eos_sink.kafka_config.broker_versions import (
    NEEDED,
    VERIFICATION,
    check_broker,
    check_verification,
)

ENOUGH = {ability.key: ability.version for ability in NEEDED}
# As Kafka 2.8.2 and 3.5.2 answer.
KAFKA_2_8 = {9: 7, 10: 3, 11: 7, 24: 3, 28: 3}
KAFKA_3_5 = {**ENOUGH, 24: 3}


def test_a_broker_that_can_do_all_of_it_passes() -> None:
    check_broker("1", ENOUGH)
    check_broker("1", {key: version + 3 for key, version in ENOUGH.items()})


@pytest.mark.parametrize("ability", NEEDED, ids=lambda ability: ability.name)
def test_each_thing_that_is_lacking_is_named_with_the_kafka_that_brings_it(ability: object) -> None:
    key, since = ability.key, ".".join(map(str, ability.since))  # type: ignore[attr-defined]
    for newest in ({**ENOUGH, key: -1}, {k: v for k, v in ENOUGH.items() if k != key}):
        with pytest.raises(ClusterError, match=since) as error:
            check_broker("3", newest)
        assert error.value.data == {
            "broker": "3",
            "lacking": [ability.name],  # type: ignore[attr-defined]
        }


def test_the_newest_of_what_is_lacking_says_which_kafka_it_takes() -> None:
    with pytest.raises(ClusterError, match=r"3\.6") as error:
        check_broker("1", KAFKA_2_8)
    lacking = ["AddPartitionsToTxn", "ListTransactions", "DescribeTransactions", "FindCoordinator"]
    assert error.value.data["lacking"] == lacking
    with pytest.raises(ClusterError, match=r"3\.6"):
        check_broker("1", {})


def test_a_broker_that_cannot_verify_transactions_is_too_old() -> None:
    with pytest.raises(ClusterError) as error:
        check_broker("1", KAFKA_3_5)
    assert error.value.data["lacking"] == ["AddPartitionsToTxn"]


def test_a_broker_that_does_not_verify_is_refused_and_an_unreadable_setting_is_not() -> None:
    with pytest.raises(ClusterError) as error:
        check_verification("1", "false")
    assert error.value.data == {"broker": "1", "setting": VERIFICATION}
    for value in ("true", None):
        check_verification("1", value)
