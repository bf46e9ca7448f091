"""The functions that a mutant changes, and their new code in place of the old, where they are.

Who has imported a function has the same object: new code in it is noticed everywhere.
"""

import ast
import gc
from collections.abc import Mapping, Sequence
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType

# A global of the module while its functions record their calls.
CALLS = "_qualified_names_of_called_functions"
OURS = ("identity", "taxpayers", "tokens")
# By its qualified name; None: several have that name.
Codes = Mapping[str, CodeType | None]


def codes_of(source: str, path: Path) -> Codes:
    """The code of each function, also of those inside others."""
    found: dict[str, CodeType | None] = {}
    pending = [compile(source, str(path), "exec", dont_inherit=True)]
    while pending:
        inner = [value for value in pending.pop().co_consts if isinstance(value, CodeType)]
        pending += inner
        for code in inner:
            found[code.co_qualname] = None if code.co_qualname in found else code
    return found


def recording(source: str) -> ast.Module:
    """The module, whose functions begin by adding their qualified names to the set CALLS."""
    tree: ast.Module = _Recording().visit(ast.parse(source))
    _begin_with(f"{CALLS} = set()", tree)
    return ast.fix_missing_locations(tree)


class _Recording(ast.NodeTransformer):
    def __init__(self) -> None:
        self._around: tuple[str, ...] = ()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._inside(node, node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        name = ".".join((*self._around, node.name))
        self._inside(node, node.name, "<locals>")
        _begin_with(f"{CALLS}.add({name!r})", node)
        return node

    def _inside(self, node: ast.AST, *names: str) -> ast.AST:
        before, self._around = self._around, (*self._around, *names)
        self.generic_visit(node)
        self._around = before
        return node


def _begin_with(statement: str, node: ast.Module | ast.FunctionDef) -> None:
    place = 0 if ast.get_docstring(node) is None else 1
    node.body[place:place] = ast.parse(statement).body


def changes_only_functions(before: str, after: str) -> bool:
    """Whether what is run at the import of the module is the same: no default and no decorator."""
    return _without_bodies(before) == _without_bodies(after)


class _NoBodies(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = []
        return node


def _without_bodies(source: str) -> str:
    return ast.dump(_NoBodies().visit(ast.parse(source)))


def _is_of_service(cache: object) -> bool:
    return str(getattr(cache, "__module__", "")).split(".")[0] in OURS


class Functions:
    """The functions of a module that was imported, and what they remember."""

    def __init__(self, source: str, path: Path) -> None:
        """`source` is that of the module, as it was imported from `path`."""
        self._path = path
        self._source = source
        self.codes = codes_of(source, path)
        # By type(): to ask a lazy object for its class would make it work.
        objects = [o for o in gc.get_objects() if type(o) in (FunctionType, _lru_cache_wrapper)]
        # Also of other modules: what they remember may be made of what a function returned.
        caches = [o for o in objects if isinstance(o, _lru_cache_wrapper)]
        self._caches = [o for o in caches if _is_of_service(o) or self._has(o.__wrapped__)]
        self._in_use: dict[str, list[FunctionType]] = {}
        for function in (o for o in objects if isinstance(o, FunctionType) and self._has(o)):
            self._in_use.setdefault(function.__code__.co_qualname, []).append(function)

    def _has(self, function: object) -> bool:
        code = getattr(function, "__code__", None)
        return code is not None and code.co_filename == str(self._path)

    def changed_by(self, mutated: str) -> Codes:
        """The new code of the functions that differ; none if other things do, too."""
        if not changes_only_functions(self._source, mutated):
            return {}
        after = codes_of(mutated, self._path)
        names = self.codes.keys() | after.keys()
        changed = {n: after.get(n) for n in names if self.codes.get(n) != after.get(n)}
        fits = all(self._fits(name, code) for name, code in changed.items())
        return changed if fits else {}

    def _fits(self, name: str, code: CodeType | None) -> bool:
        # Python refuses code that uses other variables of the function around it.
        old: Sequence[FunctionType] = self._in_use.get(name, ())
        return code is None or all(
            len(function.__code__.co_freevars) == len(code.co_freevars) for function in old
        )

    def can_replace(self, changed: Codes) -> bool:
        """Whether each of them, or the function around it, gets its new code."""
        in_use = self._in_use.keys() & changed.keys()
        return bool(in_use) and all(changed[name] is not None for name in in_use)

    def replace(self, changed: Codes) -> None:
        """From now on these functions have this code, and results of the old are forgotten."""
        for name, code in changed.items():
            if code is not None:
                for function in self._in_use.get(name, ()):
                    function.__code__ = code
        self.forget_results()

    def forget_results(self) -> None:
        """No module remembers a result any more."""
        for cache in self._caches:
            cache.cache_clear()
