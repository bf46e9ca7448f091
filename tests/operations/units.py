"""What the units of `deploy/systemd/` start."""

import re

from tests.servers.processes import CHECKOUT

FOLDER = CHECKOUT / "deploy" / "systemd"


def commands_of(unit: str, instance: str = "") -> list[str]:
    """Its commands in their order, those before the start first."""
    text = (FOLDER / unit).read_text(encoding="utf-8")
    found = re.findall(r"^ExecStart(?:Pre)?=(.+)$", text, re.MULTILINE)
    return [command.replace("%i", instance) for command in found]
