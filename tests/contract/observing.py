"""What every implementation shows an operator: the log on and on, transactions, ends, groups."""

from __future__ import annotations

from eos_sink.kafka.interfaces import TransactionStatus
from tests.contract.harness import SESSION_MS, TIMEOUT_MS, Harness, Task
from tests.contract.reading import KEY, append

OTHER = "another-0123456789"


class ObservationContract:
    def test_a_log_that_is_not_there_is_none_and_is_not_made(self, harness: Harness) -> None:
        for _ in range(2):
            assert harness.observation().log_lines({}, harness.deadline()) is None

    def test_all_that_is_committed_is_read_with_its_place_and_time(self, harness: Harness) -> None:
        first = append(harness, b"1")
        append(harness, b"aborted", commit=False)
        second, third = append(harness, b"2"), append(harness, b"o", OTHER)
        page = harness.observation().log_lines({}, harness.deadline())
        assert page is not None
        mine = [(line.position.offset, line.value) for line in page.lines if line.key == KEY]
        assert mine == [(first, b"1"), (second, b"2")]
        (other,) = (line for line in page.lines if line.key == OTHER)
        assert (other.position.offset, other.value) == (third, b"o")
        assert not page.anew
        times = [line.at_ms for line in page.lines]
        assert times == sorted(times)
        assert min(times) > 1_600_000_000_000

    def test_only_what_has_come_since_is_read(self, harness: Harness) -> None:
        kafka = harness.observation()
        append(harness, b"1")
        before = kafka.log_lines({}, harness.deadline())
        assert before is not None
        nothing = kafka.log_lines(before.ends, harness.deadline())
        assert nothing is not None
        assert nothing.lines == ()
        append(harness, b"2")
        append(harness, b"o", OTHER)
        after = kafka.log_lines(before.ends, harness.deadline())
        assert after is not None
        assert sorted(line.value for line in after.lines) == [b"2", b"o"]
        assert all(after.ends[number] >= end for number, end in before.ends.items())

    def test_an_open_transaction_on_the_log_is_not_waited_for(self, harness: Harness) -> None:
        append(harness, b"1")
        kafka = harness.kafka()
        reader = kafka.log_reader(harness.deadline())
        place = reader.position(KEY)
        reader.close()
        open_ = kafka.log_producer(f"{harness.names.driver}-open", TIMEOUT_MS)
        open_.init(harness.deadline())
        open_.begin()
        open_.produce(place.topic, b"2", key=KEY.encode(), partition=place.partition)
        open_.flush(harness.deadline())
        observation = harness.observation()
        page = observation.log_lines({}, harness.deadline())
        assert page is not None
        assert [line.value for line in page.lines] == [b"1"]
        open_.commit(harness.deadline())
        after = observation.log_lines(page.ends, harness.deadline())
        while not (after and after.lines):  # EndTxn answers before the markers are written.
            after = observation.log_lines(page.ends, harness.deadline())
        assert [line.value for line in after.lines] == [b"2"]
        open_.close()

    def test_offsets_that_the_log_does_not_have_any_more_are_not_heeded(
        self, harness: Harness
    ) -> None:
        append(harness, b"1")
        kafka = harness.observation()
        before = kafka.log_lines({}, harness.deadline())
        assert before is not None
        beyond = {number: end + 100 for number, end in before.ends.items()}
        page = kafka.log_lines(beyond, harness.deadline())
        assert page is not None
        assert page.anew
        assert [line.value for line in page.lines] == [b"1"]
        assert page.ends == before.ends

    def test_open_transactions_are_described_and_ended_ones_if_wanted(
        self, harness: Harness
    ) -> None:
        topic = harness.create_topic()
        open_, done = Task.start(harness, 0), Task.start(harness, 1)
        open_.write(topic, b"o")
        done.write_and_commit(topic, b"d")
        done.state()
        prefix = harness.names.group
        kafka = harness.observation()
        (found,) = kafka.transactions(prefix, harness.deadline())
        assert found == open_.state()
        assert found.started_ms > 1_600_000_000_000
        every = kafka.transactions(prefix, harness.deadline(), ended=True)
        assert [state.status for state in every] == [
            TransactionStatus.ONGOING,
            TransactionStatus.COMPLETE_COMMIT,
        ]
        missing = kafka.described([f"{prefix}-1-7"], harness.deadline())[f"{prefix}-1-7"]
        assert missing.status is TransactionStatus.MISSING
        assert kafka.transactions(f"{prefix}-1", harness.deadline(), ended=True) == []
        assert open_.transaction in [
            s.transaction for s in kafka.transactions("", harness.deadline())
        ]

    def test_ends_are_told_for_many_topics_at_once(self, harness: Harness) -> None:
        one, two = harness.create_topic(), harness.create_topic(partitions=2)
        done, open_ = Task.start(harness, 0), Task.start(harness, 1)
        done.write(one, b"a", b"b")
        done.commit()
        done.state()
        open_.write(one, b"o")
        harness.delete_records(one, 0, 1)
        missing = f"missing-{harness.names.query}"
        found = harness.observation().ends([one, missing, two], harness.deadline())
        assert found[missing] == ()
        shown = {
            topic: [(e.partition, e.start, e.stable, e.end) for e in ends]
            for topic, ends in found.items()
            if isinstance(ends, tuple)
        }
        assert shown == {one: [(0, 1, 3, 4)], two: [(0, 0, 0, 0), (1, 0, 0, 0)], missing: []}
        assert harness.observation().ends([], harness.deadline()) == {}

    def test_hosts_are_told_for_many_groups_at_once(self, harness: Harness) -> None:
        names, unknown = harness.names, f"{harness.names.group}-unknown"
        kafka = harness.kafka()
        kafka.log_reader(harness.deadline()).close()
        kafka.member(names.group, names.driver, SESSION_MS).join(
            harness.deadline(TIMEOUT_MS / 1000)
        )
        found = harness.observation().hosts([names.group, unknown], harness.deadline())
        assert found[unknown] == ()
        members = found[names.group]
        assert isinstance(members, tuple)
        assert len(members) == 1
        assert harness.observation().hosts([], harness.deadline()) == {}
