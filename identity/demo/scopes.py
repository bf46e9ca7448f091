"""The scopes of the demo: also those of the management API, so that a portal can be tried. Pure."""

import json

from identity.configuration.setting_list import SETTINGS
from identity.management_api import SCOPES


def demo_scopes() -> str:
    """As the setting SCOPES is written."""
    usual = json.loads(SETTINGS["SCOPES"].default)
    audience = "RegistryAPI"
    more = {name: {"description": text, "audience": audience} for name, text in SCOPES.items()}
    return json.dumps(usual | more)
