"""The values and rules of the protocol. Pure: no client, no setting, no clock."""
