"""The oracles: one JVM each for Kafka 4.3.1 (with its coordinators' records) and for 3.9.1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.java_pipe import JavaPipe
from tests.support.oracle import oracle

POM_43 = "kafka-coordinators"
POM_39 = "kafka-clients-3.9.1"


@pytest.fixture(scope="session")
def kafka43() -> Iterator[JavaPipe]:
    with oracle(POM_43) as pipe:
        yield pipe


@pytest.fixture(scope="session")
def kafka39() -> Iterator[JavaPipe]:
    with oracle(POM_39) as pipe:
        yield pipe
