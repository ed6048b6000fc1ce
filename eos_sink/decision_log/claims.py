"""Who has written a stream, and who has moved a consumer group, as the decision log tells."""

from __future__ import annotations

from eos_sink.decision_log.codec import decode_claim
from eos_sink.kafka.deadline import Deadline
from eos_sink.kafka.interfaces import Kafka
from eos_sink.protocol.model import Claim, claim_suffix


def read_claims(kafka: Kafka, subject: str, deadline: Deadline) -> list[Claim]:
    """The claims of a subject by all identities, up to the end of the log at the call.

    Args:
        kafka: with a decision log that exists.

    Raises:
        OperatorNeededError: one cannot be read: a newer version or another program wrote it.
    """
    found = kafka.claim_records(subject, claim_suffix(subject), deadline)
    every = [decode_claim(value, key) for key, value in sorted(found.items()) if value]
    # A subject may end like another one's key.
    return [claim for claim in every if claim.subject == subject]
