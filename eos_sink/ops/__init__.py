"""What an operator asks of a cluster: judgements over what was gathered. Changes nothing."""
