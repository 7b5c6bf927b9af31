"""Real clients in groups of the new protocol (KIP-848), alone and beside classic ones."""
