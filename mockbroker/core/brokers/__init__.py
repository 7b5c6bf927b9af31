"""Brokers: their processes, and the controller that registers and fences them.

A *broker* has a process, a metadata image and a registration. `broker_life` is the table of the
states of a process. The *controller* changes registrations and leaders.
"""
