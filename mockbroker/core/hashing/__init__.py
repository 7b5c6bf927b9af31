"""The hash functions that clients and brokers agree on."""
