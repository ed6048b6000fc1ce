"""Pages for people: HTML that needs nothing else, and plots in it."""
