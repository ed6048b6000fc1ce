"""Reads anybody's topic as an application does, and judges what it was given.

It knows nothing of the sink: whatever wrote the topic, the same is looked at.
"""
