"""Consumer groups as real clients live them: sharing, joining, rebalancing, falling silent."""
