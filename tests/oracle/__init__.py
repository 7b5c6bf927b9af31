"""Kafka's own classes as the judge: every message of every version, byte for byte."""
