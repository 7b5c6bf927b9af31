"""Clusters in files: data directories that follow a cluster, and saved snapshots."""
