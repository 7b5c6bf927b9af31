"""The examples of the docs as code for tests: what a page shows is what is put to the test.

`tests/house/test_docs.py` runs the examples as they stand. Here they are taken from their page and
tried harder: killed more often, driven by other hands, compiled and run on a JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from _pytest.fixtures import FixtureFunctionDefinition

from tests.house.doc_blocks import FILE_NAME, ROOT, blocks_of
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
    # Only these are taken away again: what an example imports is imported for good, and extension
    # modules could not be a second time.
    sys.modules.update(beside)
    try:
        exec(compile(source(page, name), f"docs/{page}: {name}", "exec"), made.__dict__)
    finally:
        for each in beside:
            del sys.modules[each]
    return made


def java_classes(page: str, name: str, jars: Iterable[Path], folder: Path) -> Path:
    """The folder of the classes of a Java example; `folder` is for scratch.

    Raises MavenError when it does not compile.
    """
    file = folder / name
    file.write_text(source(page, name), encoding="utf-8")
    return maven.javac([file], jars, Path(name).stem)


def examples_of(page: str) -> dict[str, object]:
    """The tests and fixtures of a page's `test_*.py`, to be put into a test module.

    They then run as tests of that module, in this process: with its marks, and with fixtures that
    are too dear to make once more for a page. Raises LookupError when a page has two of one name.
    """
    files = [
        match.group(1)
        for block in blocks_of((DOCS / page).read_text(encoding="utf-8"))
        if (match := FILE_NAME.match(block.text)) is not None
    ]
    found: dict[str, object] = {}
    for name in files:
        if not name.startswith("test_"):
            continue
        text = source(page, name)
        helpers = [each for each in files if f"\nfrom {Path(each).stem} import" in text]
        for key, value in vars(module(page, name, *helpers)).items():
            if not key.startswith("test_") and not isinstance(value, FixtureFunctionDefinition):
                continue
            if key in found:
                raise LookupError(f"docs/{page} has two of the name {key}")
            found[key] = value
    return found
