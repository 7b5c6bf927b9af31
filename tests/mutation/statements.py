"""Operators that cosmic-ray lacks: a statement that is not carried out, and membership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator

Span = tuple[tuple[int, int], tuple[int, int]]


class DeleteStatement(Operator):
    """A call, an augmented assignment or an assignment to an attribute becomes `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        if _is_effect(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        prefix = node.get_first_leaf().prefix
        return parso.python.tree.Keyword("pass", node.start_pos, prefix=prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("self.left.pop()\n", "pass\n"), Example("a.b = 1\n", "pass\n"))


def _is_effect(node: Any) -> bool:
    if node.parent is None or node.parent.type != "simple_stmt":
        return False
    if node.type in {"atom_expr", "await_expr"}:
        return bool(node.get_code().rstrip().endswith(")"))
    if node.type != "expr_stmt" or node.children[1].type == "annassign":
        return False
    return node.children[1].type == "operator" and (
        node.children[1].value != "=" or node.children[0].type in {"atom_expr", "power"}
    )


class NegateMembership(Operator):
    """`in` becomes `not in`, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        if node.type == "comparison" and len(node.children) == 3:
            word = node.children[1]
            if word.get_code(include_prefix=False) in {"in", "not in"}:
                yield word.start_pos, word.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        word = node.children[1].get_code(include_prefix=False)
        node.children[1] = parso.parse(" in" if word == "not in" else " not in")
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("x in y", "x not in y"), Example("x not in y", "x in y"))


OPERATORS = (DeleteStatement, NegateMembership)
