"""Small linters over syntax trees, for house rules that no linter on the shelf knows.

A *call* is named by the full dotted name of what is called, with imports resolved: after
`from time import sleep as nap`, `nap(1)` is a call of `time.sleep`.
"""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".venv", ".cache", ".git", "build", "dist", "node_modules", "target", "_build"}


class Call(NamedTuple):
    line: int
    name: str


def calls(source: str) -> Iterator[Call]:
    """Yield each call, and each bare mention of a dotted name, whose root was imported.

    Mentions count because `clock = time.monotonic` reads a clock as surely as calling it does.
    """
    tree = ast.parse(source)
    imported = dict(_imports(tree))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            parts = _dotted(node)
            if parts and parts[0] in imported and not _is_store(node):
                yield Call(node.lineno, ".".join([imported[parts[0]], *parts[1:]]))


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname is None:
                    root = name.name.partition(".")[0]
                    yield root, root
                else:
                    yield name.asname, name.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _dotted(node: ast.AST) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []


def _is_store(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def offences(source: str, banned: tuple[str, ...], allowed: tuple[str, ...] = ()) -> list[Call]:
    """The calls that match a banned pattern (`random.*`) and no allowed one (`random.Random`)."""

    def matches(name: str, patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return [
        call
        for call in calls(source)
        if matches(call.name, banned) and not matches(call.name, allowed)
    ]


def python_files(*folders: str) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if NOT_OURS.isdisjoint(path.relative_to(ROOT).parts)
    ]


@functools.cache
def our_files() -> tuple[Path, ...]:
    """Every file of the project: what git would commit, or the whole tree outside a checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = list(ROOT.rglob("*"))
    return tuple(
        path
        for path in sorted(paths)
        if path.is_file() and NOT_OURS.isdisjoint(path.relative_to(ROOT).parts)
    )
