"""A whole cluster as data: taken, put back, written to bytes, read from bytes, followed as it goes.

Nouns: an *image* is everything that makes a cluster, as structs and as logs whose bytes are shared
with the cluster it was taken of. To *capture* a cluster is to take its image, to *restore* one is
to make a cluster what an image says. A *frame* is a piece of a file: a checksummed header,
*changes* as msgpack, and the bytes of batches. The first frames of a file hold a whole image, those
after them what changed since. A *recorder* watches a cluster and makes frames of its changes; a
*builder* makes an image of frames.

Cut links, lagging followers and held watermarks are no part of an image: such rules end with a
restore. Groups and transactions are in the logs of their internal topics, where their coordinators
load them after a restore.
"""
