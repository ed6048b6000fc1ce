"""The interfaces to Kafka and the clients behind them; nothing else uses a client library."""
