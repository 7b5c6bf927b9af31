"""What the coordinators of groups and of transactions have in common: shards, loading, waiting."""
