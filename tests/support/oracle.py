"""The Java oracle: Kafka's own classes, asked over a pipe (`tests/java/src/oracle`)."""

from __future__ import annotations

from tests.support.java_pipe import JavaPipe


def oracle(pom: str) -> JavaPipe:
    """Start the oracle on the classes of one pom.

    Only Kafka 4 is asked about record batches: 3.9 keeps their classes in another package.
    """
    folders = ["oracle"]
    if pom != "kafka-clients-3.9.1":
        folders.append("oracle-kafka4")
    return JavaPipe("mockbroker.oracle.Oracle", folders, pom)
