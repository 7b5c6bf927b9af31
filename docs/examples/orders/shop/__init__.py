"""A coffee shop on Kafka.

The *till* sends orders. *Billing* writes one bill for each order, with consecutive numbers. The
*kitchen* makes a dish for each bill. *Sales* adds up what was billed. `mistakes` has the same
programs with one mistake each.

    till ──> orders ──> billing ──> bills ──┬──> kitchen ──> dishes
                           │                └──> sales (Spark) ──> a table
                           └──> bills-snapshots
"""
