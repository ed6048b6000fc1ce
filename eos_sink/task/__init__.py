"""Runs in a task: Arrow batches in, a prepared transaction out."""
