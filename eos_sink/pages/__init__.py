"""HTML pages that load nothing, and the style of their plots."""
