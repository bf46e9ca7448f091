"""Every change of state of the registry: keyword-only, atomic, recorded in the history.

They raise `ServiceError`, with one line for the person who asked; then nothing has changed.
"""

from taxpayers.services.acting_limits import limit_system_user
from taxpayers.services.credential_changes import (
    IssuedSecret,
    LastLiveCredential,
    issue_secret,
    retire_credential,
    revoke_credential,
)
from taxpayers.services.ends import end_earlier, extend
from taxpayers.services.granted_permissions import (
    grant_permission,
    revoke_codes,
    revoke_permission,
    set_permission_code,
)
from taxpayers.services.history import Author, AuthorKind
from taxpayers.services.import_kinds import IMPORT_KINDS, BadRowsError, ImportKind, ImportResult
from taxpayers.services.import_lock import one_import_at_a_time
from taxpayers.services.intermediaries import register_intermediary, set_intermediary_active
from taxpayers.services.live_credentials import change_credential
from taxpayers.services.login_method.change import (
    bind_tokens,
    register_system_user_without_secret,
    use_client_secret,
    use_public_credential,
)
from taxpayers.services.login_method.registration import register_public_credential
from taxpayers.services.management_clients import OnlyOperators
from taxpayers.services.row_import import ImportPreview
from taxpayers.services.system_users import (
    block_system_user,
    change_system_user,
    extend_system_user,
    register_system_user,
    unblock_system_user,
)
from taxpayers.services.taxpayers import register_taxpayer, rename_taxpayer, set_taxpayer_active
from taxpayers.validation import ServiceError
