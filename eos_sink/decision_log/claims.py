"""Reads who has written a stream, and who has moved a consumer group, from the decision log."""

from __future__ import annotations

from eos_sink.decision_log.codec import decode_as
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.messages import Reason, stop
from eos_sink.protocol.model import Claim, KnownClaims, Numbering, claim_suffix


def read_claims(kafka: Kafka, subject: str, deadline: Deadline) -> list[Claim]:
    """The claims of a subject by all identities, up to the end of the log at the call.

    Args:
        kafka: with a decision log that exists.

    Raises:
        OperatorNeededError: one cannot be read: a newer version or another program wrote it.
    """
    claims, _ = read_claims_from(kafka, subject, deadline)
    return claims


def read_claims_from(
    kafka: Kafka, subject: str, deadline: Deadline, start: int = 0, end: int | None = None
) -> tuple[list[Claim], int]:
    """The same from an offset on.

    Args:
        end: only those before this offset have to be among them.

    Returns:
        The claims, and where to read on.
    """
    found, reached = kafka.claim_records(subject, claim_suffix(subject), deadline, start, end)
    every = [(key, decode_as(Claim, value, key)) for key, value in sorted(found.items()) if value]
    if wrong := [key for key, claim in every if claim.key != key]:
        raise stop(Reason.UNREADABLE_RECORD, where=wrong[0], error="it is another one's claim")
    # A subject may end like another one's key.
    return [claim for _, claim in every if claim.subject == subject], reached


def check_claims(
    kafka: Kafka, claim: Claim, known: KnownClaims, end: int | None, deadline: Deadline
) -> None:
    """Check that no other identity has claimed a stream or group since its claims were read. Of two
    that claim it at once, the later one in the log waits for the outcome of the other. Frames of
    one batch may claim one stream.

    Args:
        claim: is in the log, in an open transaction.
        known: what was read of its claims; the log may have megabytes before the others.
        end: the claim's offset; None: it is not known, and this transaction is waited for in vain.

    Raises:
        CommitFailedError: one has.
    """
    claims, _ = read_claims_from(kafka, claim.subject, deadline, known.reached, end)
    for other in claims:
        are_frames = other.numbering is claim.numbering is Numbering.FOREACH and claim.is_of_stream
        if other.names not in (claim.names, *known.names) and not are_frames:
            raise stop(Reason.CLAIMED_TWICE, subject=claim.subject, other=other)
