"""The rules of the layers: each is a function over a source tree that names every violation."""

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from tests.support.source_tree import SourceTree

DRAWERS = {"utils", "util", "helpers", "common", "base", "misc"}
SIGNALS = ("django.dispatch", "django.db.models.signals", "django.core.signals")
TEMPLATE_ENGINE = ("django.shortcuts", "django.template")
FRAMEWORKS = ("django", "oauth2_provider", "oauthlib", "rest_framework")


def upward_imports(tree: SourceTree, rooms: Sequence[str]) -> Iterator[str]:
    """Imports of a room by one below it; `rooms` from top to bottom.

    Also by a string with the name of a module, which Django or `import_string` would import.
    """
    for position, room in enumerate(rooms):
        below = rooms[position + 1 :]
        for found in tree.imports:
            if _is_in(found.module, *below) and found.is_of(room):
                yield str(found)
        for module in tree.modules:
            if _is_in(module, *below):
                named = (text for text in tree.strings(module) if _is_in(text, room))
                yield from (
                    f"{module} names {text}" for text in named if tree.imported_module(text)
                )


def imports_in_functions(tree: SourceTree, allowed: Collection[str]) -> Iterator[str]:
    """Imports of our own modules that wait for a call, except in the modules that are `allowed`."""
    for found in tree.imports:
        is_ours = tree.imported_module(found.name) is not None
        if found.is_in_function and is_ours and found.module not in allowed:
            yield str(found)


def circles(tree: SourceTree) -> Iterator[str]:
    """Modules that import each other in a circle, be it for type hints alone."""
    graph: dict[str, set[str]] = {module: set() for module in tree.modules}
    for found in tree.imports:
        imported = tree.imported_module(found.name)
        if imported and imported != found.module and not found.is_in_function:
            graph[found.module].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        yield " -> ".join(circle.args[1])


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
    """Imports of these libraries outside of the packages and modules that are `allowed`."""
    for found in tree.imports:
        if found.is_of(*libraries) and not _is_in(found.module, *allowed):
            yield str(found)


def imported_applications(
    tree: SourceTree, settings: str, applications: Collection[str]
) -> Iterator[str]:
    """Modules of an application that the settings import, directly or not."""
    seen, waiting = {settings}, [settings]
    while waiting:
        module = waiting.pop()
        for found in (found for found in tree.imports if found.module == module):
            imported = tree.imported_module(found.name)
            if imported and imported not in seen:
                seen.add(imported)
                waiting.append(imported)
                if _is_in(imported, *applications):
                    yield str(found)


def logic_in_models(tree: SourceTree) -> Iterator[str]:
    """Models whose saving or deleting does more than Django's own."""
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


def crowded_folders(
    tree: SourceTree, folders: Iterable[str], most: int, exempt: Collection[str]
) -> Iterator[str]:
    """Folders with more than `most` files; also one that is `exempt` and has no more than that."""
    files = Counter(
        str(path.parent.relative_to(tree.root))
        for folder in folders
        for path in (tree.root / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    )
    for folder, count in sorted(files.items()):
        if count > most and folder not in exempt:
            yield f"{folder} has {count} files"
    yield from (f"{folder} needs no exemption" for folder in exempt if files[folder] <= most)


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
            if rank.get(_staff_room(used, "/"), own) < own:
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
