"""Measurements beside peers; nothing here is an assertion."""
