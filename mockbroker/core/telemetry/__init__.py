"""Client telemetry (KIP-714): who is asked for which metrics, and what came in."""
