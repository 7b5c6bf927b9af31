"""The part that waits: sockets, timers and the trio run. Nothing below this layer knows that time
passes.

Nouns: the *server* owns a cluster and its listeners; a *listener* is one bound port of one broker;
a
*connection* reads frames of one client, keeps one request in flight and writes the answers in
order; a
*transport* moves bytes; the *clock* turns the trio run's time into milliseconds since the epoch;
the
*timekeeper* runs the core's timers when they are due.
"""
