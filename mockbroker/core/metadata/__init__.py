"""Metadata: what the controller has decided, and what each broker has heard of it.

A *metadata image* holds topics, brokers and the controller as of one metadata epoch. The
*metadata cache* has the image of each broker; the *metadata publisher* brings a newer one to it. A
*topic* has its partitions and configs; a *feature* has a level; a *profile* is what one release of
Kafka serves.

Source: org.apache.kafka.image, org.apache.kafka.metadata.
"""
