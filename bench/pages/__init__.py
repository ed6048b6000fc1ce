"""What each result says on its page of the documentation: Markdown and plots, from JSON alone."""
