"""`python -m eos_sink.testing TOPIC ...`: a Kafka with these topics, until Ctrl-C."""

from eos_sink_lab.testing.__main__ import main

if __name__ == "__main__":
    main()
