"""Bounds the rows that tasks hand to the driver. Pure."""

from __future__ import annotations

from eos_sink.protocol.model import Plan
from eos_sink.protocol.values import MOST_INLINE_BYTES

# The default of spark.sql.shuffle.partitions.
_USUAL_TASKS = 200
# Less room than this saves no time, however slow the brokers were.
_LEAST_ROOM = MOST_INLINE_BYTES >> 6
# Rows that took less than this part of their time limit may be twice as many.
_GOOD_PART = 1 / 4
# Without rows that tell, the room is doubled in about as many batches.
_FORGET_BATCHES = 256
# An attempt that failed divides the share by four. After this many no task hands over rows.
_SHRINK_BITS, _MOST_FAILED = 2, 3
NOTHING_INLINE = -1


def inline_share(inline_bytes: int, partition: int, plan: Plan) -> int:
    """The largest partition, in bytes, that a task hands to the driver; NOTHING_INLINE: none.

    No task knows how many there are. So it takes the number of the latest decision: tasks beyond it
    get little, and those beyond the usual number nothing, so that the driver can hold the rows of
    all tasks in any batch. What the driver, Spark or the network takes may still be less than
    that: each plan that was given up since the decision divides the share, except the first one,
    which every start of a query gives up.

    Args:
        inline_bytes: the option.
        partition: the task's.
    """
    decision, failed = plan.decision, max(plan.given_up - 1, 0)
    tasks = max(decision.partitions, 1) if decision is not None else _USUAL_TASKS
    if partition >= max(tasks, _USUAL_TASKS) or failed > _MOST_FAILED:
        return NOTHING_INLINE
    # Of a task up to the usual number which the latest decision did not have.
    unexpected = min(inline_bytes, plan.room // (2 * _USUAL_TASKS))
    reserved = max(_USUAL_TASKS - tasks, 0) * unexpected
    expected = min(inline_bytes, (plan.room - reserved) // tasks)
    share = expected if partition < tasks else unexpected
    return share >> failed * _SHRINK_BITS


def room_after(room: int, sent: int, part: float) -> int:
    """Return how many bytes of rows the driver takes in the batches after a decision.

    Args:
        room: before it.
        sent: bytes of the rows that the driver has written last; 0: it has written none.
        part: of their time limit that these took.
    """
    if not sent:
        # What has failed may be tried again some day.
        return min(room + room // _FORGET_BATCHES, MOST_INLINE_BYTES)
    if part <= _GOOD_PART:
        return min(max(room, 2 * sent), MOST_INLINE_BYTES)
    return max(min(room, int(sent * _GOOD_PART / part)), _LEAST_ROOM)


def room_after_failure(room: int, sent: int) -> int:
    """The same after a decision, with so many bytes of rows, that has failed: because of their
    number, if they are many; a row that Kafka refuses fails few as well."""
    return min(room, sent >> _SHRINK_BITS) if sent >> _SHRINK_BITS > _LEAST_ROOM else room
