"""identity -> tokens -> taxpayers, never the other way; pure modules stay pure."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.servers import CHECKOUT

ROOMS = ("identity", "tokens", "taxpayers")  # each may import itself and those to its right
PURE = {
    *("taxpayers.identifiers", "taxpayers.credentials", "taxpayers.rules"),
    "taxpayers.facts.values",
    *("tokens.endpoint.form", "tokens.endpoint.request", "tokens.refusals.table"),
    *("tokens.client_auth.authenticated", "tokens.client_auth.client_secret"),
    *("tokens.access_tokens.claims", "tokens.access_tokens.verification"),
    *(f"tokens.rate_limits.{noun}" for noun in ("backoff", "denial_cache", "quota", "throttle")),
    "tokens.keys.ring",
}
OAUTH_LIBRARIES = {"taxpayers.models.system_user", "tokens.endpoint.toolkit"}
FILES = sorted(path for room in ROOMS for path in (CHECKOUT / room).rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def name_of(path: Path) -> str:
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


IMPORTS = {name_of(path): set(imports_of(tree)) for path, tree in TREES.items()}


def importers(*prefixes: str) -> set[str]:
    return {
        module
        for module, imported in IMPORTS.items()
        if any(f"{name}.".startswith(f"{prefix}.") for name in imported for prefix in prefixes)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_imported_only_by_itself_and_those_above_it(room: str) -> None:
    above = ROOMS[: ROOMS.index(room) + 1]
    strangers = {m for m in importers(room) if m.partition(".")[0] not in above}
    assert strangers == set()


def test_pure_modules_import_no_framework_and_only_pure_modules() -> None:
    assert IMPORTS.keys() >= PURE
    assert PURE & importers("django", "oauth2_provider", "oauthlib", "rest_framework") == set()
    packages = {name_of(path) for path in FILES if path.name == "__init__.py"}
    impure = IMPORTS.keys() - PURE - packages
    assert PURE & importers(*impure) == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for type hints either; what a function imports when it is called is another matter."""
    graph = {}
    for path, tree in TREES.items():
        at_once = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        imported = set(imports_of(ast.Module(at_once, type_ignores=[])))
        modules = {name if name in IMPORTS else name.rpartition(".")[0] for name in imported}
        graph[name_of(path)] = modules - {name_of(path)}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names them


def test_the_oauth_libraries_are_imported_in_a_handful_of_files() -> None:
    assert importers("oauthlib", "oauth2_provider") == OAUTH_LIBRARIES


def test_nothing_happens_behind_a_signal() -> None:
    signals = importers("django.dispatch", "django.db.models.signals", "django.core.signals")
    assert signals == {"identity.wsgi"}  # it takes two of Django's own listeners away


def test_no_model_hides_logic_in_save_or_delete() -> None:
    hidden = {
        f"{name_of(path)}.{node.name}.{method.name}"
        for path, tree in TREES.items()
        if path.name == "models.py" or "models" in path.parts
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name in {"save", "delete", "full_clean"}
    }
    assert hidden == set()


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "common", "base", "misc"}
    assert {name for name in IMPORTS if drawers & set(name.split("."))} == set()
