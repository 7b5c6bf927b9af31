"""A node with one share partition."""

from __future__ import annotations

import pytest

from tests.support.share import ShareNode


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.topic("t")
    return node
