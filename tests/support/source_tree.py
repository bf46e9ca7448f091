"""The Python files and templates of a checkout, as the tests of the layers read them."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_TAG = re.compile(r"{%-?\s*(load|include|extends)\s+(.*?)\s*%}")
_FROM = re.compile(r".*\sfrom\s+(\w+)$")  # {% load tag other_tag from library %}


@dataclass(frozen=True, slots=True)
class Import:
    """`module` imports `name`, which may be a module or something in it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module} imports {self.name}"

    def is_of(self, *packages: str) -> bool:
        return any(f"{self.name}.".startswith(f"{package}.") for package in packages)


@dataclass(frozen=True, slots=True)
class Template:
    """A template, the tag libraries that it loads, the templates that it includes or extends."""

    name: str
    libraries: frozenset[str]
    templates: frozenset[str]


class SourceTree:
    """The modules of these packages below `root`, and the templates in `root/templates`."""

    def __init__(self, root: Path, packages: tuple[str, ...]) -> None:
        self.root = root
        self.files = {
            self._module(path): path
            for package in packages
            for path in sorted((root / package).rglob("*.py"))
        }

    def _module(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        return {
            name: ast.parse(path.read_text(encoding="utf-8")) for name, path in self.files.items()
        }

    @cached_property
    def imports(self) -> list[Import]:
        return [
            Import(module, name)
            for module, parsed in self.modules.items()
            for node in ast.walk(parsed)
            for name in self._names(module, node)
        ]

    def _names(self, module: str, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            return [f"{node.module}.{alias.name}" for alias in node.names]
        return []

    def imported_module(self, name: str) -> str | None:
        """The module of this tree that `name` is, or is in; None for one of a library."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name or None

    def strings(self, module: str) -> set[str]:
        return {
            node.value
            for node in ast.walk(self.modules[module])
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    @cached_property
    def templates(self) -> list[Template]:
        folder = self.root / "templates"
        return [
            self._template(str(path.relative_to(folder)), path.read_text(encoding="utf-8"))
            for path in sorted(folder.rglob("*.*"))
        ]

    @staticmethod
    def _template(name: str, text: str) -> Template:
        tags = _TAG.findall(text)
        libraries: set[str] = set()
        for _, arguments in (tag for tag in tags if tag[0] == "load"):
            one = _FROM.match(arguments)
            libraries.update([one[1]] if one else arguments.split())
        templates = {
            arguments.split()[0].strip("\"'") for kind, arguments in tags if kind != "load"
        }
        return Template(name, frozenset(libraries), frozenset(templates))
