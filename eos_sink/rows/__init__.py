"""The rows of a batch as Arrow columns: their fingerprint, and the places of their keys."""
