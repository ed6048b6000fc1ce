"""Is called by Spark: the data source, its writers, session defaults, the cache of clients."""
