"""`listing.py --root DIR --seed N [--size N]`: mutants of a checkout, as lines of JSON.

Runs in the environment of cosmic-ray and imports nothing else of the project. Each line has the
package, the path, the line's number and text before and after, the operator, and the new text of
the file. With `--size`, so many sites are drawn, as many of each package, and of each site one
mutant. Without, there are all.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import sql
import statements
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

# What is mutated. The rules that Spark carries out need a JVM for each mutant and are left out;
# `tests/pipeline/spark` compares them with the same oracle.
PACKAGES: dict[str, tuple[str, ...]] = {
    "log": ("mockbroker/core/log",),
    "replication": ("mockbroker/core/replication",),
    "groups": ("mockbroker/core/groups",),
    "share": ("mockbroker/core/share", "mockbroker/core/groups/share"),
    "streams": ("mockbroker/core/groups/streams",),
    "transactions": ("mockbroker/core/txn",),
    "audit": (
        "mockbroker/pipeline/convert", "mockbroker/pipeline/duck",
        "mockbroker/pipeline/findings.py", "mockbroker/pipeline/operations.py",
    ),
}  # fmt: skip
# Measures describe a run; they are no part of the audit.
LEFT_OUT = ("duck/measures", "__main__.py", "__init__.py")

# Of cosmic-ray's operators those whose change a reader could have made by mistake: `a + b` becomes
# `a - b`, not `a ** b`.
PAIRS = {
    "Add": "Sub", "Sub": "Add", "Mul": "FloorDiv", "FloorDiv": "Mul", "Mod": "FloorDiv",
    "BitOr": "BitAnd", "BitAnd": "BitOr", "BitXor": "BitAnd", "LShift": "RShift",
    "RShift": "LShift",
}  # fmt: skip
COMPARISONS = (
    "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt",
    "GtE_Lt", "Is_IsNot", "IsNot_Is",
)  # fmt: skip
NAMES = (
    *(f"ReplaceBinaryOperator_{one}_{other}" for one, other in PAIRS.items()),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS),
    "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub",
    "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "AddNot", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer",
    "ZeroIterationForLoop",
)  # fmt: skip

Place = tuple[int, int]


class Change(NamedTuple):
    """A mutant that can be made: by which operator, at which of its occurrences in the file."""

    path: str
    place: Place
    operator: str
    occurrence: int


def operators() -> dict[str, Operator]:
    found = {name: get_operator(f"core/{name}")() for name in NAMES}
    return found | {each.__name__: each() for each in statements.OPERATORS}


def changes(root: Path, path: str, known: dict[str, Operator]) -> Iterator[Change]:
    """Every change of a file."""
    text = (root / path).read_text("utf-8")
    if path.endswith(".sql"):
        for number, swap in enumerate(sql.swaps(text)):
            yield Change(path, (swap.start, 0), "sql", number)
        return
    counts: dict[str, int] = defaultdict(int)
    for node in ast_nodes(get_ast(text)):
        for name, operator in known.items():
            for start, _ in operator.mutation_positions(node):
                yield Change(path, start, name, counts[name])
                counts[name] += 1


def changed(text: str, change: Change, known: dict[str, Operator]) -> str | None:
    """The text of the file with a change; None if it means what it meant, or nothing."""
    if change.operator == "sql":
        swap = list(sql.swaps(text))[change.occurrence]
        return text[: swap.start] + swap.text + text[swap.end :]
    new: str | None = mutate_code(text, known[change.operator], change.occurrence)
    if new is None:
        return None
    try:
        return None if meaning(new) == meaning(text) else new
    except SyntaxError:
        return None


# Keywords of classes that say what may not be done with their objects, or how these are stored.
SAFEGUARDS = {"frozen", "gc", "kw_only", "slots"}


class _Bare(ast.NodeTransformer):
    """Without what is not carried out: annotations of functions and variables, what only a type
    checker imports, safeguards.
    """

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg in SAFEGUARDS:
            node.value = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        names = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
        return ast.Pass() if names == {"TYPE_CHECKING"} else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in {"cast", "TypeVar"}:
            return ast.Constant(None)
        return self.generic_visit(node)


def meaning(text: str) -> str:
    return ast.dump(_Bare().visit(ast.parse(text)))


def files(root: Path, package: str) -> list[str]:
    """What is in the places of a package, but for what another package has within them."""
    places = PACKAGES[package]
    others = tuple(f"{place}/" for name in PACKAGES.keys() - {package} for place in PACKAGES[name])
    inner = tuple(each for each in others if each.startswith(tuple(f"{own}/" for own in places)))
    found = []
    for place in places:
        path = root / place
        under = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.sql")]
        found += [each.relative_to(root).as_posix() for each in under]
    found = [each for each in found if not each.startswith(inner)]
    return sorted(each for each in found if not any(part in each for part in LEFT_OUT))


def sites(root: Path, package: str, known: dict[str, Operator]) -> list[list[Change]]:
    """The changes of a package, by the place that they change."""
    found: dict[tuple[str, Place], list[Change]] = defaultdict(list)
    for path in files(root, package):
        for change in changes(root, path, known):
            found[path, change.place].append(change)
    return list(found.values())


def drawn(sites: list[list[Change]], dice: random.Random) -> Iterator[Change]:
    """One change of each site, the sites in an order of their own."""
    for site in dice.sample(sites, len(sites)):
        yield dice.choice(site)


def in_turns(
    packages: Iterable[tuple[str, Iterator[Change]]],
) -> Iterator[tuple[str, Change]]:
    """One change of each package after the other, until all have ended."""
    left = list(packages)
    while left:
        for package in list(left):
            change = next(package[1], None)
            if change is None:
                left.remove(package)
            else:
                yield package[0], change


def mutants(
    root: Path, wanted: Iterable[tuple[str, Change]], known: dict[str, Operator]
) -> Iterator[dict[str, object]]:
    """The changes that mean something."""
    for package, change in wanted:
        text = (root / change.path).read_text("utf-8")
        new = changed(text, change, known)
        if new is not None:
            line, before, after = lines_of(text, new)
            yield {
                "package": package, "path": change.path, "line": line, "before": before,
                "after": after, "operator": change.operator, "text": new,
            }  # fmt: skip


def lines_of(old: str, new: str) -> tuple[int, str, str]:
    """The number of the first line that differs, and what it was and is."""
    before, after = old.splitlines(), new.splitlines()
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one != other:
            return number, one.strip(), other.strip()
    return len(before), "", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, help="how many in all; without it, all")
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--count", action="store_true", help="only how many sites there are")
    arguments = parser.parse_args()
    known = operators()
    packages = arguments.package or list(PACKAGES)
    kinds = [(each, sites(arguments.root, each, known)) for each in packages]
    if arguments.count:
        for package, found in kinds:
            print(json.dumps({package: [len(found), sum(map(len, found))]}))
        return
    if arguments.size is None:
        every = ((package, change) for package, found in kinds for site in found for change in site)
    else:
        every = in_turns(
            (package, drawn(found, random.Random(f"{arguments.seed} {package}")))
            for package, found in kinds
        )
    made = mutants(arguments.root, every, known)
    for mutant in itertools.islice(made, arguments.size):
        print(json.dumps(mutant), flush=True)


if __name__ == "__main__":
    main()
