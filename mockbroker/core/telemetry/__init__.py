"""Client telemetry (KIP-714): subscriptions and pushed metrics."""
