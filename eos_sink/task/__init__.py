"""The task's half of the protocol: Arrow batches in, a prepared transaction out."""
