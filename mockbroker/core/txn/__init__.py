"""Transactions: the coordinator, its state machine, and the markers."""
