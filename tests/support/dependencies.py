"""What a file of tests depends on: its result is the same as long as this does not change."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import grimp

from tests.support.saved_runs import code_hash

PRODUCT = ("mockbroker", "protocol", "fixtures", "bench", "requirements", "pyproject.toml")
"""What every test depends on. The docs are not among it: they have the figures of the runs."""
MEASURED = "durations.json"
"""Decides the order of the tests only."""
NAMED = re.compile(r"\btests[./]\w[\w./]*")
"""A module in a string: a plugin, or the command of a process."""


class Dependencies:
    """What the files of tests in a checkout depend on, as it is now.

    Imports are followed from file to file, and so are modules that are named in strings. Modules
    that are in the file's folder or below count as well, but for other files of tests: they may be
    loaded by a name that is made up. So do, for every file, the product and the tests' data.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tests = root / "tests"

    def hash_of(self, file: Path) -> str:
        """A hash of a file of tests and of all that it depends on.

        A file that is in no folder of the checkout's tests depends on the conftest.py beside it.
        """
        if not file.is_relative_to(self._tests):
            return code_hash(file.parent, (file.name, "conftest.py"))
        names = (self._files[module].relative_to(self._root) for module in self.modules(file))
        return self._common + code_hash(self._root, sorted(map(str, names)))

    def modules(self, file: Path) -> set[str]:
        """The modules of tests that a file of tests depends on, itself too."""
        reached: set[str] = set()
        ahead = {
            name
            for name, path in self._files.items()
            if path.is_relative_to(file.parent) and not path.name.startswith("test_")
        } | {self._name(file)}
        while ahead:
            module = ahead.pop()
            reached.add(module)
            ahead |= self._next[module] - reached
        return reached

    def _name(self, file: Path) -> str:
        parts = file.relative_to(self._root).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")

    @cached_property
    def _next(self) -> dict[str, set[str]]:
        """What each module imports or names, and what is loaded before it."""
        return {module: self._next_to(module) for module in self._files}

    def _next_to(self, module: str) -> set[str]:
        found: set[str] = set()
        if module in self._imports.modules:  # its folder is a package
            found |= self._imports.find_modules_directly_imported_by(module)
        text = self._files[module].read_text(encoding="utf-8")
        found |= {each.replace("/", ".").removesuffix(".py") for each in NAMED.findall(text)}
        packages = module.split(".")[:-1]
        for length in range(1, len(packages) + 1):
            package = ".".join(packages[:length])
            found |= {package, f"{package}.conftest"}
        return found & self._files.keys()

    @cached_property
    def _imports(self) -> grimp.ImportGraph:
        return grimp.build_graph("tests", cache_dir=None)

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {self._name(path): path for path in self._tests.rglob("*.py")}

    @cached_property
    def _common(self) -> str:
        """A hash of the product and of the tests' data."""
        data = (
            str(path.relative_to(self._root))
            for path in self._tests.rglob("*")
            if path.is_file() and path.suffix != ".py" and path.name != MEASURED
        )
        return code_hash(self._root, (*PRODUCT, *sorted(data)))
