"""Who has written a stream, and who has moved a consumer group, as the decision log tells."""

from __future__ import annotations

from collections.abc import Collection

from eos_sink.decision_log.codec import decode_as
from eos_sink.identity import QueryNames
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Claim, Numbering, claim_suffix


def read_claims(
    kafka: Kafka, subject: str, deadline: Deadline, end: int | None = None
) -> list[Claim]:
    """The claims of a subject by all identities, up to the end of the log at the call.

    Args:
        kafka: with a decision log that exists.
        end: only those before this offset have to be among them.

    Raises:
        OperatorNeededError: one cannot be read: a newer version or another program wrote it.
    """
    found = kafka.claim_records(subject, claim_suffix(subject), deadline, end)
    every = [(key, decode_as(Claim, value, key)) for key, value in sorted(found.items()) if value]
    if wrong := [key for key, claim in every if claim.key != key]:
        raise stop(Reason.UNREADABLE_RECORD, where=wrong[0], error="it is another one's claim")
    # A subject may end like another one's key.
    return [claim for _, claim in every if claim.subject == subject]


def check_claims(
    kafka: Kafka, claim: Claim, known: Collection[QueryNames], end: int | None, deadline: Deadline
) -> None:
    """Check that no other identity has claimed a stream since its claims were read. Of two that
    claim it at once, the later one in the log waits for the outcome of the other. Frames of one
    batch may do so.

    Args:
        claim: is in the log, in an open transaction.
        known: the identities that had claimed the stream when its claims were read.
        end: the claim's offset; None: it is not known, and this transaction is waited for in vain.

    Raises:
        CommitFailedError: one has.
    """
    for other in read_claims(kafka, claim.subject, deadline, end):
        are_frames = other.numbering is claim.numbering is Numbering.FOREACH
        if other.names not in (claim.names, *known) and not are_frames:
            raise stop(Reason.CLAIMED_TWICE, subject=claim.subject, other=other)
