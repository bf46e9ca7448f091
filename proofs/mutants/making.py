"""The mutants of a module, of one small fault each: by cosmic-ray, and three kinds more. Pure."""

import ast
import difflib
import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Keyword

# For each sign of the language one or two others: the rest fails the same tests.
_SIGNS = {
    "ReplaceComparisonOperator": (
        *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
        *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    ),
    "ReplaceBinaryOperator": (
        *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Div_Mul", "Mod_Add", "Pow_Mul"),
        *("LShift_RShift", "RShift_LShift", "BitOr_BitAnd", "BitAnd_BitOr"),
    ),
    "ReplaceUnaryOperator": ("USub_UAdd", "Delete_Not"),
}
_OTHERS = (
    *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "NumberReplacer"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
    "RemoveDecorator",  # not ExceptionReplacer, which fails at `except module.Error`
)
OPERATORS = (
    *(f"core/{kind}_{signs}" for kind, all_signs in _SIGNS.items() for signs in all_signs),
    *(f"core/{name}" for name in _OTHERS),
)
_CACHES = {"cache", "lru_cache"}  # as decorators
_ONLY_COSTS = {"slots", "maxsize"}  # as arguments


@dataclass(frozen=True)
class Mutant:
    """One fault: the module as it is with it, and the lines that differ, without indentation."""

    module: str
    before: str
    after: str
    line: int  # the first one that differs
    source: str = field(repr=False)

    @property
    def difference(self) -> str:
        """What it is called in the list of survivors: it need not change when lines are added."""
        return f"{self.before}  =>  {self.after}"

    @cached_property
    def id(self) -> str:
        """Another one as soon as anything in the module changes."""
        return hashlib.sha256(f"{self.module}\n{self.source}".encode()).hexdigest()[:20]


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Each mutant of the module once, in the order of their lines."""
    # One statement of the module after the other: each mutant needs a new tree of what it is in.
    parts = [node.get_code() for node in get_ast(source).children]
    lines_before = 0
    for place, part in enumerate(parts):
        meaning = _meaning(part)
        made = {text for text in _mutated(part) if _meaning(text) not in (meaning, None)}
        for line, text in sorted((_first_line(part, text), text) for text in made):
            whole = "".join((*parts[:place], text, *parts[place + 1 :]))
            yield Mutant(module, *_difference(part, text), lines_before + line, whole)
        lines_before += part.count("\n")


def _mutated(source: str) -> Iterator[str]:
    tree = get_ast(source)
    nodes, stored = list(ast_nodes(tree)), pickle.dumps(tree)  # which loads faster than it parses
    ours = (RemoveStatement(), NegateFilter(), NegateMembership())
    for operator in (*(get_operator(name)() for name in OPERATORS), *ours):
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for occurrence in range(count):
            visitor = MutationVisitor(occurrence, operator)
            mutated = visitor.walk(pickle.loads(stored))  # noqa: S301 - our own bytes
            if visitor.mutation_applied:
                yield mutated.get_code()


class _Behaviour(ast.NodeTransformer):
    """Without annotations, which the type checker reads, and what only changes time or memory."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [one for one in node.decorator_list if not _is_cache(one)]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_zip = isinstance(node.func, ast.Name) and node.func.id == "zip"  # `strict` only checks
        node.keywords = [w for w in node.keywords if not is_zip and w.arg not in _ONLY_COSTS]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _is_cache(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Name) and named.id in _CACHES


def _meaning(source: str) -> str | None:
    """What the program does, whatever it looks like; None if it is none."""
    try:
        return ast.dump(_Behaviour().visit(ast.parse(source)))
    except SyntaxError:
        return None


def _difference(source: str, mutated: str) -> tuple[str, str]:
    lines = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))
    before = " ".join(line[2:].strip() for line in lines if line.startswith("- "))
    after = " ".join(line[2:].strip() for line in lines if line.startswith("+ "))
    return before, after


def _first_line(source: str, mutated: str) -> int:
    pairs = list(zip(source.splitlines(), mutated.splitlines(), strict=False))
    return next((at for at, (one, other) in enumerate(pairs, 1) if one != other), len(pairs))


class _Ours(Operator):  # type: ignore[misc]  # it has no types
    """Something is left out, or means the opposite."""

    @classmethod
    def examples(cls) -> tuple[tuple[str, str], ...]:
        return ()


class RemoveStatement(_Ours):
    """`raise …`, `return …`, a call, or an assignment to an attribute or an entry, is left out."""

    _TYPES = ("raise_stmt", "return_stmt", "atom_expr", "yield_expr", "await")

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and self._has_an_effect(node):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = Keyword("pass", node.start_pos, node.get_first_leaf().prefix)
        return node

    def _has_an_effect(self, node: Any) -> bool:
        statement = node.children[0]
        if statement.type == "expr_stmt":
            return bool(statement.children[0].type == "atom_expr")
        if statement.get_code().strip() == "return None":  # as the end of a function is
            return node is not node.parent.children[-1] or node.parent.parent.type != "funcdef"
        return statement.type in self._TYPES


class NegateFilter(_Ours):
    """`for … if not (…)` in a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(f" not ({node.children[1].get_code().strip()})")
        return node


class NegateMembership(_Ours):
    """`in` and `not in` change places."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "comparison":
            for _, sign in self._signs(node):
                yield sign.start_pos, sign.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        place, sign = list(self._signs(node))[index]
        other = "in" if sign.get_code().strip() != "in" else "not in"
        node.children[place] = parso.parse(f" {other}")
        return node

    @staticmethod
    def _signs(node: Any) -> Iterator[tuple[int, Any]]:
        for place in range(1, len(node.children), 2):
            if node.children[place].get_code().split() in (["in"], ["not", "in"]):
                yield place, node.children[place]
