"""Timing: timers, durations and clocks.

A *timer* calls back at a time of the cluster's clock. A *clock domain* is a part of the cluster
(groups, transactions, retention, compaction) whose clock can be advanced alone; a domain timer
uses that clock. A duration is text such as `7d`, or milliseconds.
"""
