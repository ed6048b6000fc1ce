"""Writes each result into its page of the documentation: Markdown and plots from JSON."""
