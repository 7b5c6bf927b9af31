"""The cluster's clock: milliseconds since the epoch on the trio run's clock, and its control.

Nouns: the *cluster clock* turns the trio run's time into milliseconds since the epoch; the
*timekeeper* runs the core's timers when they are due; an *adjustable clock* is a trio clock that
can be frozen and advanced.
"""
