"""Handlers of a test instead of the real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey

Handle = Callable[[Any, Any], object]


def replace_handler(monkeypatch: pytest.MonkeyPatch, api: ApiKey, handle: Handle) -> None:
    """Replace a handler in this thread only: other threads serve clients of earlier tests."""
    thread, original = threading.get_ident(), APIS[api].handle

    def chosen(context: Any, request: Any) -> Any:
        return (handle if threading.get_ident() == thread else original)(context, request)

    monkeypatch.setattr(APIS[api], "handle", chosen)
