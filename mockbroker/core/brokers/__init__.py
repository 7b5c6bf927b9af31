"""Brokers: their processes, and the controller that registers and fences them.

A *broker* has a process, a metadata image and a registration. Its life is the table of what a
process can go through. The *controller* changes registrations and leaders.
"""
