"""Tasks of one secret, key or certificate, under the lock and the ETag of its system user."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db.models import Model

from identity.api.framework.fields import Body, End, Text, Texts
from identity.api.framework.kinds import ApiTask, Asker, Values
from identity.api.framework.problems import Problem
from identity.api.registry.taxpayers import ReasonBody
from taxpayers.models import Credential, SystemUser
from taxpayers.operations import Operation
from taxpayers.services import retire_credential
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET
from taxpayers.services.limits.source_networks import CHANGE_SECRET

_GREATEST = 2**63 - 1  # of a key in the database
_ADDRESS: dict[str, Any] = {
    "before": "credentials/<int:credential>/",
    "parameters": {"credential": "The id of the secret, key or certificate."},
}


class RetireBody(Body):
    """An earlier last day of a secret."""

    expires_at = End()
    reason = Text()


class NetworksBody(Body):
    """From where a secret or key may be used; none: from anywhere."""

    allowed_networks = Texts()
    reason = Text()


def _of_credential(act: Callable[[Credential, Values, Asker], Any]) -> Any:
    @wraps(act)
    def checked(row: SystemUser, values: Values, address: Values, asker: Asker) -> Model:
        number = address["credential"]
        found = row.credentials.filter(pk=number).first() if number <= _GREATEST else None
        if found is None:
            raise Problem("not_found", "This system user has no such secret, key or certificate.")
        act(found, values, asker)
        return row

    return checked


def _by_service(operation: Operation) -> Any:
    return _of_credential(lambda row, values, asker: operation.run(row, **values, **asker.context))


def _retire(secret: Credential, values: Values, asker: Asker) -> None:
    end, reason = values["expires_at"], values["reason"]
    retire_credential(credential=secret, last_moment=end, reason=reason, **asker.context)


TASKS = (
    ApiTask(
        "revoke",
        REVOKE_SECRET,
        ReasonBody,
        _by_service(REVOKE_SECRET),
        "Its tokens end.",
        **_ADDRESS,
    ),
    ApiTask(
        "retire",
        RETIRE_SECRET,
        RetireBody,
        _of_credential(_retire),
        **_ADDRESS,
    ),
    ApiTask(
        "networks",
        CHANGE_SECRET,
        NetworksBody,
        _by_service(CHANGE_SECRET),
        **_ADDRESS,
    ),
)
