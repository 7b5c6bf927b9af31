"""The examples of the docs as code for tests: what a page shows is what is put to the test.

`tests/house/test_docs.py` runs the examples as they stand. Here they are taken from their page and
tried harder: killed more often, driven by other hands, compiled and run on a JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from tests.house.doc_blocks import ROOT, blocks_of
from tests.support import maven

DOCS = ROOT / "docs"


def source(page: str, name: str) -> str:
    """The text of the block that opens with `# name` or `// name`. Raises LookupError."""
    for block in blocks_of((DOCS / page).read_text(encoding="utf-8")):
        if block.text.partition("\n")[0] in {f"# {name}", f"// {name}"}:
            return block.text
    raise LookupError(f"docs/{page} has no block that opens with {name}")


def module(page: str, name: str, *helpers: str) -> ModuleType:
    """A Python example as a module; `helpers` are the files beside it that it imports."""
    beside = {Path(each).stem: module(page, each) for each in helpers}
    made = ModuleType(Path(name).stem)
    with patch.dict(sys.modules, beside):
        exec(compile(source(page, name), f"docs/{page}: {name}", "exec"), made.__dict__)
    return made


def java_classes(page: str, name: str, jars: Iterable[Path], folder: Path) -> Path:
    """The folder of the classes of a Java example; `folder` is for scratch.

    Raises MavenError when it does not compile.
    """
    file = folder / name
    file.write_text(source(page, name), encoding="utf-8")
    return maven.javac([file], jars, Path(name).stem)
