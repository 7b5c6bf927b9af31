"""A whole cluster as data: captured, restored, written to a file, read from one, and recorded.

Nouns: an *image* holds a cluster as structs, and as logs whose bytes are shared with the cluster.
To *capture* a cluster is to make its image, to *restore* one is to make a cluster equal to an
image. A *frame* is a piece of a file: a checksummed header, *changes* as msgpack, and the bytes of
batches. The first frames of a file hold a whole image, later frames the changes since. A *recorder*
watches a cluster and makes frames of its changes; a *builder* makes an image of frames.

Cut links, lagging followers and limited watermarks are not part of an image: such rules end with a
restore. Groups and transactions are in the logs of their internal topics; their coordinators load
them after a restore.
"""
