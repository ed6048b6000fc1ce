"""`eos-sink migrate` without its printing: read what a query gives, say what becomes of it."""
