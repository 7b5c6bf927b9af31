"""The declarations: one module per API, and one per kind of internal record. Facts of Kafka 4.3."""
