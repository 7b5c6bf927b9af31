"""Spark's Kafka connector, batch and streaming, against the cluster."""
