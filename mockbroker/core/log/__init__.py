"""The log of one replica: batches, segments, leader epochs, producers, retention, compaction."""
