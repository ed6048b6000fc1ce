"""The driver's half of the protocol: plan, recover, vote, decide, settle, abort."""
