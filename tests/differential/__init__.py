"""The same raw requests to the real Kafka broker and to ours; the answers must be equal.

Nouns: a *case* is a function that speaks to one *peer* through a *session*; it runs once against
each. Everything the session receives (an answer, a close, silence) becomes one *exchange*. What
two right brokers may differ in (ids that are drawn, ports, times) is named, field by field, in
`normalised.toml`; all else must be the same. A case that needs an id uses the one it was given.
"""
