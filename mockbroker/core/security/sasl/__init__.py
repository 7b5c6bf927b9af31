"""Authentication of clients on SASL listeners, as state machines without I/O.

A *mechanism* (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER) is a method of authentication. Its
server side handles *tokens* of the client until the client is authenticated or refused. An
*authenticator* is the state machine of one connection: which requests are allowed until the client
is authenticated, and the re-authentication of a *session* with a lifetime (KIP-368). A *realm* has
the mechanisms, users and keys that the authenticators of a listener share.

As in Kafka, an error does not reveal which part of the credentials is wrong.
"""
