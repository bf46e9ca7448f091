"""The rules of the layers: each is a function over a source tree that names every violation."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import zip_longest

from tests.support.source_tree import SourceTree

DRAWERS = {"utils", "util", "helpers", "common", "base", "misc"}
SIGNALS = ("django.dispatch", "django.db.models.signals", "django.core.signals")
TEMPLATE_ENGINE = ("django.shortcuts", "django.template")
SETTINGS = ("identity.settings",)  # it names modules as Django wants it, and is named so
_MODULE = re.compile(r"\w+(\.\w+)+")
FRAMEWORKS = ("django", "oauth2_provider", "oauthlib", "rest_framework")
Floors = dict[str, Sequence[Sequence[str]]]  # rooms of each folder, floor by floor, from the top


def rooms_without_floor(tree: SourceTree, floors: Floors) -> Iterator[str]:
    """Folders and modules that no floor names, that two name, and names of nothing."""
    for root, levels in floors.items():
        named = Counter(room for level in levels for room in level)
        present = {_room(module, root) for module in tree.modules} - {"", "migrations"}
        yield from (f"{root}.{room} is on no floor" for room in sorted(present - named.keys()))
        yield from (f"{root}.{room} is not there" for room in sorted(named.keys() - present))
        yield from (f"{root}.{room} is named twice" for room, n in named.items() if n > 1)


def climbing_imports(tree: SourceTree, floors: Floors) -> Iterator[str]:
    """Imports of another room on the same floor or on a higher one; also by a string."""
    for root, levels in floors.items():
        floor = {room: number for number, level in enumerate(levels) for room in level}
        for module, name in _uses(tree):
            own, other = floor.get(_room(module, root)), floor.get(_room(name, root))
            is_other = _room(module, root) != _room(name, root)
            if own is not None and other is not None and is_other and other <= own:
                yield f"{module} uses {name}"


def circles_of_folders(tree: SourceTree) -> Iterator[str]:
    """Folders at any depth whose direct children use each other in a circle; so also modules."""
    graphs: dict[str, dict[str, set[str]]] = {}
    for module, name in _uses(tree):
        pairs = [*zip_longest(module.split("."), name.split("."), fillvalue="__init__")]
        shared = next(depth for depth, (own, other) in enumerate(pairs) if own != other)
        folder, (own, other) = ".".join(own for own, _ in pairs[:shared]), pairs[shared]
        graphs.setdefault(folder, {}).setdefault(own, set()).add(other)
    for folder, graph in sorted(graphs.items()):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as circle:
            yield f"{folder}: {' -> '.join(circle.args[1])}"


def _uses(tree: SourceTree) -> Iterator[tuple[str, str]]:
    """Each module with each other module of ours that it imports, or names in a string."""
    for found in tree.imports:
        imported = tree.imported_module(found.name)
        if imported and imported != found.module:
            yield found.module, imported
    for module in tree.modules:
        for text in tree.strings(module) if module not in SETTINGS else ():
            named = tree.imported_module(text) if _MODULE.fullmatch(text) else None
            is_package = named and tree.files[named].name == "__init__.py"  # as loggers are named
            if named and named not in (module, *SETTINGS) and not is_package:
                yield module, named


def _room(module: str, root: str) -> str:
    """The direct child of `root` that is this module, or that it is in; empty outside of it."""
    start = f"{root}." if root else ""
    return module.removeprefix(start).split(".")[0] if module.startswith(start) else ""


def impure_imports(tree: SourceTree, pure: Collection[str]) -> Iterator[str]:
    """Pure modules that are missing, or that import a framework or a module that is not pure."""
    yield from (f"{module} is missing" for module in pure if module not in tree.modules)
    for found in tree.imports:
        ours = tree.imported_module(found.name)
        is_package = ours is not None and tree.files[ours].name == "__init__.py"
        is_impure = found.is_of(*FRAMEWORKS) or not (ours is None or ours in pure or is_package)
        if found.module in pure and is_impure:
            yield str(found)


def foreign_importers(
    tree: SourceTree, libraries: Sequence[str], allowed: Collection[str]
) -> Iterator[str]:
    for found in tree.imports:
        if found.is_of(*libraries) and not _is_in(found.module, *allowed):
            yield str(found)


def logic_in_models(tree: SourceTree) -> Iterator[str]:
    for module, parsed in tree.modules.items():
        if "models" not in module.split("."):
            continue
        for model in (node for node in ast.walk(parsed) if isinstance(node, ast.ClassDef)):
            for method in (node for node in model.body if isinstance(node, ast.FunctionDef)):
                if method.name in {"save", "delete", "full_clean"}:
                    yield f"{module}.{model.name}.{method.name}"


def drawers(tree: SourceTree) -> Iterator[str]:
    """Modules with a name under which anything could be put."""
    yield from (module for module in tree.modules if DRAWERS & set(module.split(".")))


def templates_of_machines(tree: SourceTree, rooms: Sequence[str]) -> Iterator[str]:
    """Templates, tag libraries and rendering in rooms that answer machines."""
    for room in rooms:
        for path in sorted((tree.root / room).rglob("*")):
            if path.suffix == ".html" or path.name in {"templates", "templatetags"}:
                yield str(path.relative_to(tree.root))
    yield from (
        str(found)
        for found in tree.imports
        if _is_in(found.module, *rooms) and found.is_of(*TEMPLATE_ENGINE)
    )
    for module in tree.modules:
        if _is_in(module, *rooms):
            names = sorted(text for text in tree.strings(module) if text.endswith(".html"))
            yield from (f"{module} names {name}" for name in names)


def upward_templates(tree: SourceTree, levels: Sequence[Collection[str]]) -> Iterator[str]:
    """Templates that load, include or extend what belongs to a higher level of the staff pages.

    `levels` are the folders of `templates/staff` and `identity/staff`, from top to bottom. A tag
    library belongs to the highest room that it imports.
    """
    rank = {room: position for position, level in enumerate(levels) for room in level}
    for template in tree.templates:
        own = rank.get(_staff_room(template.name, "/"))
        if own is None:
            continue
        for library in sorted(template.libraries):
            if _rank_of_library(tree, library, rank) < own:
                yield f"{template.name} loads {library}"
        for used in sorted(template.templates):
            if used.startswith("staff/") and rank.get(_staff_room(used, "/"), own) < own:
                yield f"{template.name} uses {used}"


def missing_templates(tree: SourceTree) -> Iterator[str]:
    """Templates below `staff/` that are named somewhere and are not there, or the other way."""
    present = {t.name for t in tree.templates if t.name.startswith("staff/")}
    named = {
        text
        for module in tree.modules
        for text in tree.strings(module)
        if text.startswith("staff/") and text.endswith(".html")
    }
    named |= {used for t in tree.templates for used in t.templates if used.startswith("staff/")}
    yield from (f"{name} is missing" for name in sorted(named - present))
    yield from (f"{name} is not used" for name in sorted(present - named))


def _rank_of_library(tree: SourceTree, library: str, rank: dict[str, int]) -> int:
    module = f"identity.staff.templatetags.{library}"
    rooms = (_staff_room(f.name, ".") for f in tree.imports if f.module == module)
    return min((rank[room] for room in rooms if room in rank), default=max(rank.values()))


def _staff_room(name: str, separator: str) -> str:
    """The room of `staff/registry/page.html` or `identity.staff.registry.pages`: registry."""
    return name.removeprefix("identity.").removeprefix(f"staff{separator}").split(separator)[0]


def _is_in(module: str, *packages: str) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)
