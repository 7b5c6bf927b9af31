"""Connections of clients, from the listening socket to the handler and back.

Nouns: a *socket server* has the ports and connections of one broker; an *acceptor* listens on one
of its ports; a *connection* reads the requests of one client and sends the responses in their
order; a *transport* moves its bytes.
"""
