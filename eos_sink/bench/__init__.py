"""`eos-sink bench`, and what all measurements share."""
