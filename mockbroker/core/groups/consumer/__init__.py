"""Groups of the new protocol (KIP-848)."""
