"""Handlers: one module per API, from a typed request to a typed response, or a parked one.

A module has the name of its API. The contract of the API is beside its handler (`base.api`): the
versions served, the ACLs required, whether the controller serves it, and the exceptions of its
error response. APIs without a handler are not advertised. Modules of other names are shared.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from mockbroker.core.garbage import no_collections
from mockbroker_protocol import ApiKey


@cache
def load_all() -> None:
    """Fill `base.APIS`: import the module of each API that has one. Idempotent."""
    names = {key.name.lower() for key in ApiKey}
    with no_collections():
        for module in iter_modules(__path__):
            if module.name in names:
                import_module(f"{__name__}.{module.name}")
