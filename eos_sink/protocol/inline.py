"""How many rows a task may hand to the driver. Pure."""

from __future__ import annotations

from eos_sink.protocol.model import Plan

# Of all inlined rows of a batch, and the default of spark.sql.shuffle.partitions.
_MOST_INLINE_BYTES, _USUAL_TASKS = 16 * 1024 * 1024, 200
# Of a task up to that number which the latest decision did not have.
_UNEXPECTED_BYTES = _MOST_INLINE_BYTES // (2 * _USUAL_TASKS)
# An attempt that failed divides the share by four. After this many no task hands over rows.
_SHRINK_BITS, _MOST_FAILED = 2, 3
NOTHING_INLINE = -1


def inline_share(inline_bytes: int, partition: int, plan: Plan) -> int:
    """The largest partition, in bytes, that a task hands to the driver; NOTHING_INLINE: none.

    No task knows how many there are. So it takes the number of the latest decision: tasks beyond it
    get little, and those beyond the usual number nothing, so that the driver can hold the rows of
    all tasks in any batch. What the driver, or Spark, takes may still be less than that: each plan
    that was given up since the decision divides the share, except the first one, which every start
    of a query gives up.

    Args:
        inline_bytes: the option.
        partition: the task's.
    """
    decision, failed = plan.decision, max(plan.given_up - 1, 0)
    tasks = max(decision.partitions, 1) if decision is not None else _USUAL_TASKS
    if partition >= max(tasks, _USUAL_TASKS) or failed > _MOST_FAILED:
        return NOTHING_INLINE
    unexpected = min(inline_bytes, _UNEXPECTED_BYTES)
    reserved = max(_USUAL_TASKS - tasks, 0) * unexpected
    expected = min(inline_bytes, (_MOST_INLINE_BYTES - reserved) // tasks)
    share = expected if partition < tasks else unexpected
    return share >> failed * _SHRINK_BITS
