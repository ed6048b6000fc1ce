"""What the demo runs as a user would: programs of their own that import nothing of the demo."""
