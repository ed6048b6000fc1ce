"""`eos-sink doctor`: facts of a cluster, a query, this machine and a Spark session, and what they
mean. `gather` asks, the other modules judge without asking anything."""
