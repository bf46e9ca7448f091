"""`python -m identity.configuration.texts` writes `deploy/identity.env` from all settings."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

from identity.configuration.setting_list import SETTINGS, Setting

ENVIRONMENT_FILE = Path(__file__).resolve().parents[2] / "deploy/identity.env"
_HEAD = """\
# Settings of the token service, for every node, command and timer of this machine: copy it to
# /etc/identity/identity.env (docs/operations.md). systemd and deploy/manage read it alike: a
# value with a blank or a quotation mark goes between single quotes, any other as it is. A secret
# can be here, or in a file that <name>_FILE names. The units of systemd set SERVE and PORT.
# `deploy/manage settings` shows what is in force.
"""


def environment_file() -> str:
    """`deploy/identity.env`: every setting with its meaning, the usual ones first."""
    return "\n".join([_HEAD, *_blocks()])


def _blocks() -> Iterator[str]:
    for title, is_usual in (
        ("To be set", True),
        ("As needed: remove the # before the name to set it", False),
    ):
        yield f"# --- {title} {'-' * (90 - len(title))}\n"
        for setting in SETTINGS.values():
            if setting.is_usual == is_usual:
                yield f"{_comment(setting)}\n{'' if is_usual else '#'}{setting.assignment}\n"


def _comment(setting: Setting) -> str:
    text = f"{setting.name}: {setting.meaning}. Default: {setting.shown_default}".replace("`", "")
    lines = textwrap.wrap(text, 94, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"# {line}" for line in lines)


if __name__ == "__main__":
    ENVIRONMENT_FILE.write_text(environment_file(), encoding="utf-8")
