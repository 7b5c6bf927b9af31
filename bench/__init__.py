"""How fast and how small mockbroker is, measured beside its peers in one run: `python -m bench`.

Nouns. A *peer* is a program that answers as a Kafka cluster: mockbroker, the real broker, kfake,
librdkafka's mock. A *driver* is a client program that loads a peer: librdkafka (from C),
franz-go, Kafka's own Java tools. A *workload* loads a running peer once and returns *figures*,
each a number under the name of a *measure*. The *run* repeats each workload in *rounds*, one
peer after another within a round, so that a machine that slows down slows all of them. A *goal*
bounds a measure of mockbroker's, absolutely or as a ratio to a peer's figure of the same round.

Times are seconds, sizes are bytes, speeds are bytes of record values per second (MB = 10**6).
"""
