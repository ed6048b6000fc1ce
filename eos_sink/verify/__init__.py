"""Reads any topic as an application does and checks its rows; shares no code with the sink."""
