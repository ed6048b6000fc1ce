"""Runs on the driver: plan, recover, vote, decide, settle, abort."""
