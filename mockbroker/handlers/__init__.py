"""One module per API: a typed request in, calls on the core, a typed response (or a parked one)
out.

Each handler declares beside its code the versions it serves; importing the module registers it.
What is not registered is not advertised.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

_NOT_HANDLERS = frozenset(("__init__", "base"))


def load_all() -> None:
    """Import every handler module, so that `base.APIS` is complete. Idempotent."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _NOT_HANDLERS:
            import_module(f"{__name__}.{path.stem}")
