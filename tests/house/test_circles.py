"""Modules that import each other in a circle can only be read together, so circles stay small.

Imports for annotations alone (`TYPE_CHECKING`) and imports inside functions count: a reader follows
them like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from tests.house.lint import ROOT, our_files

FILES_MAX = 8
SOURCES = (ROOT, ROOT / "protocol", ROOT / "fixtures")
PACKAGES = ("mockbroker", "mockbroker_protocol", "mockbroker_fixtures")

Imports = Mapping[str, Collection[str]]


def imported(source: str, modules: Collection[str]) -> set[str]:
    """The modules among `modules` that a source imports, wherever it does so."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                names.add(inner if inner in modules else str(node.module))
    return names & set(modules)


def imports_of_all() -> dict[str, set[str]]:
    """What each of our modules imports of our modules."""
    sources = {}
    for path in our_files():
        for base in SOURCES:
            if path.suffix == ".py" and path.parent.is_relative_to(base):
                *packages, name = path.relative_to(base).with_suffix("").parts
                if packages and packages[0] in PACKAGES:
                    parts = packages if name == "__init__" else [*packages, name]
                    sources[".".join(parts)] = path.read_text(encoding="utf-8")
    return {
        module: imported(source, sources.keys()) - {module} for module, source in sources.items()
    }


def circles(imports: Imports) -> Iterator[list[str]]:
    """The modules that reach each other by imports, the strongly connected components of more than
    one (Kosaraju's algorithm).
    """
    importers: dict[str, set[str]] = {module: set() for module in imports}
    for module, names in imports.items():
        for name in names:
            importers[name].add(module)
    left = list(reversed(_reached(imports, imports)))
    seen: set[str] = set()
    for module in left:
        circle = _reached(importers, [module], seen)
        if len(circle) > 1:
            yield sorted(circle)


def _reached(edges: Imports, starts: Collection[str], seen: set[str] | None = None) -> list[str]:
    """What is reached from `starts` and was not `seen`, each after all that it leads to."""
    seen = set() if seen is None else seen
    order: list[str] = []
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(sorted(edges[start])))]
        while stack:
            module, names = stack[-1]
            following = next((name for name in names if name not in seen), None)
            if following is None:
                order.append(module)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))
    return order


def test_no_circle_of_imports_has_many_files() -> None:
    imports = imports_of_all()
    assert {name.partition(".")[0] for name in imports} == set(PACKAGES)
    assert [circle for circle in circles(imports) if len(circle) > FILES_MAX] == []


def test_circles_are_found_whatever_kind_of_import_closes_them() -> None:
    sources = {
        "p": "",
        "p.a": "from p import b",
        "p.b": "if TYPE_CHECKING:\n    from p.c import C",
        "p.c": "def f():\n    import p.a",
        "p.d": "from p.a import x\nfrom p.e import y",
        "p.e": "import p.d",
        "p.f": "from p.d import z\nimport os",
    }
    imports = {name: imported(source, sources) for name, source in sources.items()}
    assert sorted(circles(imports)) == [["p.a", "p.b", "p.c"], ["p.d", "p.e"]]
