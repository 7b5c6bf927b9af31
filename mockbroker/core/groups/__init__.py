"""Groups and their offsets: the coordinator, its shards, and the classic protocol."""
