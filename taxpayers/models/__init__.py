"""The tables of the registry (contract 3 and 4).

What must always be true is a constraint of the database. Rows are changed by `taxpayers.services`.
"""

from taxpayers.models import name_lookups  # registers them
from taxpayers.models.credential import MAX_LIVE_CREDENTIALS, SLOTS, Credential
from taxpayers.models.history import Change, HistoryCheck
from taxpayers.models.permission import GrantedPermission, PermissionCode
from taxpayers.models.permission_request import PermissionRequest
from taxpayers.models.status_index import EndedStatusIndex, StatusChange, StatusIndex
from taxpayers.models.system_user import (
    DEFAULT_LOGINS_PER_MINUTE,
    DEFAULT_SCOPE,
    MAX_LOGINS_PER_MINUTE,
    SystemUser,
)
from taxpayers.models.taxpayer import Intermediary, Taxpayer
from taxpayers.models.upload import UploadedFile
from taxpayers.models.usage import RateLimitCounter
from taxpayers.models.view_only import VIEW_ONLY, NoPage
