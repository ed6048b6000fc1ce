"""What Spark calls: the data source, its writers, session defaults, the cache of clients."""
