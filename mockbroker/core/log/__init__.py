"""One replica's log: bytes, segments, epochs, producers, retention and compaction."""
