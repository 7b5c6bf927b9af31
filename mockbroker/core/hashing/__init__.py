"""The hash functions of Kafka's clients and brokers."""
