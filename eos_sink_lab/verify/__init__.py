"""`eos-sink verify`: reads any topic as an application does and checks its rows."""
