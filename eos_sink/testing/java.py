"""`python -m eos_sink.testing.java`: the Java that a Kafka for tests and a local Spark run with."""

from eos_sink_lab.testing.java import main

if __name__ == "__main__":
    main()
