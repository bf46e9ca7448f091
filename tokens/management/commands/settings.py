"""`settings`: every setting, its meaning, its present value and where that comes from."""

import os
import textwrap
from datetime import datetime
from typing import Any

from django.conf import settings

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author

_HIDDEN = "(hidden)"
_WIDTH = 96


class Command(ServiceCommand):
    help = (
        "List every setting: its value, where it comes from (environment, file or default) and its"
        " meaning. Secrets are hidden. It needs no database."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        rows = [_row(setting) for setting in settings.SETTING_LIST.values()]
        wrong = [*settings.WRONG_SETTINGS, *settings.UNKNOWN_SETTINGS]
        text = "\n".join([*map(_described, rows), *(f"WRONG: {line}" for line in wrong)])
        return Output({"settings": rows, "wrong": wrong}, text)


def _row(setting: Any) -> dict[str, str]:
    source, value = _source(setting)
    return {
        "name": setting.name,
        "value": value,
        "source": source,
        "meaning": setting.meaning,
        "default": setting.shown_default.replace("`", ""),
        "example": setting.assignment,
    }


def _source(setting: Any) -> tuple[str, str]:
    path = os.environ.get(f"{setting.name}_FILE") if setting.is_secret else None
    if path:
        return f"file {path}", _HIDDEN
    given = os.environ.get(setting.name)
    if given:
        return "environment", _HIDDEN if setting.is_secret else given
    return "default", setting.shown_default.replace("`", "")


def _described(row: dict[str, str]) -> str:
    meaning = textwrap.fill(
        row["meaning"].replace("`", ""), _WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    return f"{row['name']} = {row['value']}  [{row['source']}]\n{meaning}"
