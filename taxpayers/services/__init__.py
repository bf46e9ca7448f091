"""Every change of state of the registry: keyword-only, atomic, each kept in the history.

Commands and staff pages are two doors to these functions. They raise `ServiceError`, with one line
for the person who asked, and then nothing has changed.
"""

from taxpayers.services.history import Action, Author
from taxpayers.services.intermediaries import register_intermediary, set_intermediary_active
from taxpayers.services.permissions import (
    grant_permission,
    revoke_codes,
    revoke_permission,
    set_permission_code,
)
from taxpayers.services.registry import (
    BadRows,
    Imported,
    Preview,
    import_registry,
    preview_registry,
)
from taxpayers.services.secrets import Issued, issue_secret, retire_secret, revoke_secret
from taxpayers.services.system_users import (
    block_system_user,
    change_system_user,
    extend_system_user,
    register_system_user,
    unblock_system_user,
)
from taxpayers.services.taxpayers import register_taxpayer, rename_taxpayer, set_taxpayer_active
from taxpayers.validation import ServiceError

__all__ = [
    "Action",
    "Author",
    "BadRows",
    "Imported",
    "Issued",
    "Preview",
    "ServiceError",
    "block_system_user",
    "change_system_user",
    "extend_system_user",
    "grant_permission",
    "import_registry",
    "issue_secret",
    "preview_registry",
    "register_intermediary",
    "register_system_user",
    "register_taxpayer",
    "rename_taxpayer",
    "retire_secret",
    "revoke_codes",
    "revoke_permission",
    "revoke_secret",
    "set_intermediary_active",
    "set_permission_code",
    "set_taxpayer_active",
    "unblock_system_user",
]
