"""The threads that wait to call something later."""

from __future__ import annotations

import threading


def waiting_timers() -> set[threading.Thread]:
    """The timers of this process that have neither called nor been cancelled."""
    timers = (each for each in threading.enumerate() if isinstance(each, threading.Timer))
    return {each for each in timers if not each.finished.is_set()}
