"""What runs on the driver: plan, recover, vote, decide, settle, abort."""
