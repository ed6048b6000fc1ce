"""The names of metrics, the figures of a query, and the log lines about its batches."""
