"""One module per API: a typed request in, calls on the core, a typed response (or a parked one)
out.

Each handler declares beside its code the versions it serves. What is not declared is not
advertised.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mockbroker.handlers.base import APIS, LazyApi
from mockbroker_protocol import ApiKey

# The declaration in front of a handler, as `base.api` takes it.
_DECLARATION = (
    r"^@api\(\s*ApiKey\.(\w+),\s*versions=\((\d+), (\d+)\)(?:,\s*advertised_min=(\d+))?,?\s*\)$"
)


@cache  # a process that makes many clusters reads its own source once
def load_all() -> None:
    """Fill `base.APIS` with every API declared in this package. Idempotent.

    Importing some fifty modules, and the messages behind them, would take a good part of the time a
    cluster has to start; so the declarations are read from the source, and each module is imported
    by the first request for it.
    """
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for match in re.finditer(_DECLARATION, path.read_text("utf-8"), re.MULTILINE):
            key = ApiKey[match[1]]
            if int(key) not in APIS:
                versions = (int(match[2]), int(match[3]))
                advertised_min = None if match[4] is None else int(match[4])
                module = f"{__name__}.{path.stem}"
                APIS[int(key)] = LazyApi(key, versions, advertised_min, module)
