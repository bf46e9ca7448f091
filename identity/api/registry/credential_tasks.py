"""Tasks of one secret, key or certificate, under the lock and the ETag of its system user."""

from typing import Any

from identity.api.framework.fields import Body, End, Reason, Texts
from identity.api.framework.kinds import ApiTask, Values
from identity.api.framework.problems import Problem
from identity.api.framework.records import GREATEST_ID
from identity.api.registry.taxpayers import ReasonBody
from taxpayers.models import Credential, SystemUser
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET
from taxpayers.services.limits.source_networks import CHANGE_SECRET


class RetireBody(Body):
    """An earlier last day of a secret."""

    expires_at = End(source="last_moment")
    reason = Reason()


class NetworksBody(Body):
    """From where a secret or key may be used; none: from anywhere."""

    allowed_networks = Texts()
    reason = Reason()


def _credential(row: SystemUser, address: Values) -> Credential:
    number = address["credential"]
    found = row.credentials.filter(pk=number).first() if number <= GREATEST_ID else None
    if found is None:
        raise Problem("not_found", "This system user has no such secret, key or certificate.")
    return found


_ADDRESS: dict[str, Any] = {
    "before": "credentials/<int:credential>/",
    "parameters": {"credential": "The id of the secret, key or certificate."},
    "part": _credential,
}
TASKS = (
    ApiTask("revoke", REVOKE_SECRET, ReasonBody, note="Its tokens end.", **_ADDRESS),
    ApiTask("retire", RETIRE_SECRET, RetireBody, **_ADDRESS),
    ApiTask("networks", CHANGE_SECRET, NetworksBody, verb="set_networks_of", **_ADDRESS),
)
