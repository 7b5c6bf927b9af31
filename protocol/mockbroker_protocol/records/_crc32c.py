"""CRC-32C (Castagnoli) of any buffer, without copying it.

The `crc32c` package computes it in hardware at over 20 GB/s, but its `__init__` imports
importlib.metadata and argparse, 40 ms in all, a seventh of what `mockbroker serve` may take to
start. So the extension module inside is loaded by itself; should a later release arrange its files
otherwise, the package is imported as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from mockbroker_protocol.records.batch import Buffer


def _load() -> Callable[[Buffer], int]:
    package = find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", list(package.submodule_search_locations))
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            return cast("Callable[[Buffer], int]", extension.crc32c)
    import crc32c as whole_package

    return cast("Callable[[Buffer], int]", whole_package.crc32c)


crc32c = _load()
