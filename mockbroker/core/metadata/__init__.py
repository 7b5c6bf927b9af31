"""Metadata: the controller's decisions, and the image of them that each broker has.

A *metadata image* holds topics, brokers and the controller as of one metadata epoch. The *metadata
cache* has the image of each broker; the *metadata publisher* brings a newer one to it. A *topic*
has its partitions and configs; a *feature* has a level; a *profile* has the APIs and defaults of
one release of Kafka.

Source: org.apache.kafka.image, org.apache.kafka.metadata.
"""
