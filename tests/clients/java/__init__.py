"""The Java clients and Kafka's command-line classes against the cluster."""
