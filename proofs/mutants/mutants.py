"""The mutants of a module: the same module with one small fault each. Pure.

cosmic-ray makes them; three kinds that it does not have are in `operators`.
"""

import ast
import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

from proofs.mutants.operators import NegateFilter, NegateMembership, RemoveStatement

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


@dataclass(frozen=True)
class Mutant:
    """One fault: the module as it is with it, and the lines that differ, without indentation."""

    module: str
    before: str
    after: str
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
    for place, part in enumerate(parts):
        found = sorted(_mutants_of(part), key=partial(_first_line, part.splitlines()))
        for mutated in found:
            whole = "".join((*parts[:place], mutated, *parts[place + 1 :]))
            yield Mutant(module, *_difference(part, mutated), whole)


def _mutants_of(part: str) -> set[str]:
    meaning = _meaning(part)
    return {mutated for mutated in _mutated(part) if _meaning(mutated) not in (meaning, None)}


def _operators() -> Iterator[Operator]:
    for name in OPERATORS:
        yield get_operator(name)()
    yield from (RemoveStatement(), NegateFilter(), NegateMembership())


def _mutated(source: str) -> Iterator[str]:
    nodes = list(ast_nodes(get_ast(source)))
    for operator in _operators():
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for occurrence in range(count):
            mutated = mutate_code(source, operator, occurrence)
            if mutated is not None:
                yield mutated


class _Behaviour(ast.NodeTransformer):
    """Without annotations, which the type checker reads, and what only changes memory."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [word for word in node.keywords if word.arg not in ("slots", "maxsize")]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


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


def _first_line(lines: list[str], mutated: str) -> tuple[int, str]:
    pairs = enumerate(zip(lines, mutated.splitlines(), strict=False))
    place = next((number for number, (one, other) in pairs if one != other), len(lines))
    return place, mutated
