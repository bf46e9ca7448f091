"""Kinds of faults that cosmic-ray does not make: something is left out, or means the opposite."""

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Operator
from parso.python.tree import Keyword

Position = tuple[tuple[int, int], tuple[int, int]]


class RemoveStatement(Operator):  # type: ignore[misc]  # it has no types
    """`raise …`, `return …`, a call, or an assignment to an attribute or an entry, is left out."""

    _TYPES = ("raise_stmt", "return_stmt", "atom_expr", "yield_expr", "await")

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and self._has_an_effect(node):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        prefix = node.get_first_leaf().prefix
        node.children[0] = Keyword("pass", node.start_pos, prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[tuple[str, str], ...]:
        return (("close(x)\n", "pass\n"), ("self.x = 1\n", "pass\n"))

    def _has_an_effect(self, node: Any) -> bool:
        statement = node.children[0]
        if statement.type == "expr_stmt":
            return bool(statement.children[0].type == "atom_expr")
        if statement.get_code().strip() == "return None":  # as the end of a function is
            return node is not node.parent.children[-1] or node.parent.parent.type != "funcdef"
        return statement.type in self._TYPES


class NegateFilter(Operator):  # type: ignore[misc]  # it has no types
    """`for … if not (…)` in a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(f" not ({node.children[1].get_code().strip()})")
        return node

    @classmethod
    def examples(cls) -> tuple[tuple[str, str], ...]:
        return (("[x for x in y if x]", "[x for x in y if not (x)]"),)


class NegateMembership(Operator):  # type: ignore[misc]  # it has no types
    """`in` and `not in` change places."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comparison":
            for _, sign in self._signs(node):
                yield sign.start_pos, sign.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        place, sign = list(self._signs(node))[index]
        other = "in" if sign.get_code().strip() != "in" else "not in"
        node.children[place] = parso.parse(f" {other}")
        return node

    @classmethod
    def examples(cls) -> tuple[tuple[str, str], ...]:
        return (("x in y", "x not in y"), ("x not in y", "x in y"))

    @staticmethod
    def _signs(node: Any) -> Iterator[tuple[int, Any]]:
        for place in range(1, len(node.children), 2):
            if node.children[place].get_code().split() in (["in"], ["not", "in"]):
                yield place, node.children[place]
