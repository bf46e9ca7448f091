"""The management API as other rooms name it: where it is, and the scopes that open it.

It is below the address of the staff, never at that of clients. Operators add the scopes to SCOPES.
"""

import json
from collections.abc import Collection

from django.conf import settings

from identity.configuration.setting_list import SETTINGS
from taxpayers.duties import READ, SCOPE_OF_DUTY, WHOLE, Duty

# What each opens, in words. A scope reads what it changes, and what it must name to do so.
SCOPES = {
    SCOPE_OF_DUTY[Duty.REGISTER]: "Register and change taxpayers and intermediaries.",
    SCOPE_OF_DUTY[Duty.GRANT]: "Grant and end permissions. Reads taxpayers and intermediaries.",
    SCOPE_OF_DUTY[Duty.ISSUE]: "Register, change and block system users, and issue credentials."
    " Reads their taxpayers, permission codes and logins.",
    SCOPE_OF_DUTY[Duty.WEBHOOKS]: "Manage webhooks. Reads the feed of changes.",
    READ: "Read everything.",
    WHOLE: "Read and change everything: each duty in one hand.",
}
BASE_PATH = "api/v1/management"


def scopes_that_change(duty: Duty) -> tuple[str, ...]:
    """Each of them is enough for a change of this duty; the first is the narrowest."""
    return SCOPE_OF_DUTY[duty], WHOLE


def scopes_that_read(duties: Collection[Duty]) -> tuple[str, ...]:
    """Each of them is enough to read what these duties need."""
    return READ, *(SCOPE_OF_DUTY[duty] for duty in Duty if duty in duties), WHOLE


def base_url() -> str:
    """The address of the staff, without a slash at its end."""
    return str(settings.STAFF_URL).rstrip("/")


def demo_scopes() -> str:
    """Those of the demo, as the setting SCOPES is written: with them a portal can be tried."""
    usual = json.loads(SETTINGS["SCOPES"].default)
    more = {name: {"description": text, "audience": "RegistryAPI"} for name, text in SCOPES.items()}
    return json.dumps(usual | more)
