"""Authentication of clients on SASL listeners, as state machines without I/O.

Nouns: a *mechanism* (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER) is a way to prove who one
is; its server side takes *tokens* from the client until the client has proved itself or is denied.
An *authenticator* leads one connection from its first frame to that proof: which requests it may
make on the way, and, once its *session* has a lifetime, through proving itself again (KIP-368). A
*realm* is what a listener's authenticators share: the mechanisms it offers, the users, the keys.

Denials say as little as Kafka's do: a client learns that its credentials are wrong, not which part.
"""
