"""The values and rules of the protocol. Pure: no network, no clock."""
