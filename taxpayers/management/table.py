"""Commands that are rows of a table: what their records do not say of them is a few words."""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from django.core.management import get_commands

from taxpayers.management.operation_command import OperationCommand
from taxpayers.operations import Operation

Commands = Mapping[str, type[OperationCommand]]


def command(
    base: type[OperationCommand], operation: Operation, done: str = "", **more: Any
) -> type[OperationCommand]:
    """The command of an operation; `done` and what comes beside it as OperationCommand has them."""
    return type("Command", (base,), {"operation": operation, "done": done, **more})


class _Later(ModuleType):
    """The module of a command of this table, which is imported when the command is used."""

    table: str

    def __getattr__(self, attribute: str) -> Any:
        if attribute != "Command":
            raise AttributeError(attribute)
        return import_module(self.table).COMMANDS[self.__name__.rpartition(".")[2]]


def add_commands_of(table: str, names: Iterable[str], app: str) -> None:
    """The same for a table whose imports cost much: no other command waits for them."""
    for name in names:
        module = _Later(f"{app}.management.commands.{name}")
        module.table = table
        sys.modules[module.__name__] = module
        get_commands()[name] = app


def add_commands(app: str, commands: Commands) -> None:
    """Add them to those that Django finds: it looks for a file of each, and these have none."""
    for name, made in commands.items():
        module = ModuleType(f"{app}.management.commands.{name}")
        setattr(module, "Command", made)  # noqa: B010 - a module has no such attribute
        sys.modules[module.__name__] = module
        get_commands()[name] = app
