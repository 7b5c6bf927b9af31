"""A whole cluster as data: taken, put back, written to bytes, read from bytes, followed as it goes.

Nouns: an *image* is everything that makes a cluster, as structs and as logs whose bytes are shared
with the cluster it was taken of. To *capture* a cluster is to take its image, to *restore* one is
to make a cluster what an image says. A *frame* is a piece of a file: a checksummed header,
*changes* as msgpack, and the bytes of batches. The first frames of a file hold a whole image, those
after them what changed since. A *recorder* watches a cluster and tells what has changed; a
*builder* makes an image of frames.

What people did to the network between brokers, to single followers or to watermarks is no part of
an image: such rules end with a restore. Groups and transactions are in the logs of their internal
topics, and are read from there as a coordinator does that has been elected.
"""
