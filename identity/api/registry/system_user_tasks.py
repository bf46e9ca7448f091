"""Tasks of a system user: block it, limit it, bind its tokens, change what it logs in with."""

from identity.api.framework import fields
from identity.api.framework.kinds import ApiTask, end_tasks, tasks_by_reason
from identity.api.registry.system_user_records import IssuedSystemUserRecord, show_once
from taxpayers.certificates import MAX_TEXT_LENGTH
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.services import system_users
from taxpayers.services.credential_changes import ROTATE_SECRET
from taxpayers.services.ends import END_SYSTEM_USER_EARLIER, EXTEND_SYSTEM_USER
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.login_method import change
from taxpayers.services.login_method.registration import (
    REGISTER_CLIENT_CERTIFICATE,
    REGISTER_CLIENT_KEY,
)

_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}


class LimitsBody(fields.ReasonBody):
    """What it may do for other taxpayers at most; both empty: whatever they grant.

    only_on_behalf: it gets no token for its own taxpayer; left out: as it is.
    """

    allowed_permissions = fields.Texts(source="permissions")
    allowed_taxpayers = fields.Taxpayers(source="taxpayers")
    only_on_behalf = fields.Truth(required=False)


class BindingBody(fields.ReasonBody):
    """What its tokens must be bound to."""

    token_binding = fields.Choice(_BINDINGS, source="binding")


class RotateSecretBody(fields.ReasonBody):
    """A new secret beside the present one."""

    expires_at = fields.End(
        required=False, help_text="Its last day. Left out: as long as is usual."
    )
    retire_old_at = fields.End(required=False, help_text="The last day of the present ones.")
    allowed_networks = fields.Texts(required=False, help_text="Left out: those of the present one.")


class UseSecretBody(fields.ReasonBody):
    """From now on it logs in with a new secret."""

    expires_at = fields.End(required=False)


class CertificateBody(UseSecretBody):
    """A certificate, of which the subject is registered."""

    certificate = fields.Text(max_length=MAX_TEXT_LENGTH, help_text="In PEM.")


class UseKeysBody(UseSecretBody):
    """From now on it logs in with these keys."""

    keys = fields.PublicKeys()


class KeysBody(UseKeysBody):
    """Public keys beside the present one."""

    allowed_networks = fields.Texts(required=False)


TASKS = (
    *end_tasks("SystemUser", "expires_at", EXTEND_SYSTEM_USER, END_SYSTEM_USER_EARLIER),
    *tasks_by_reason(vars(system_users)),
    ApiTask("limits", LIMIT_SYSTEM_USER, LimitsBody, verb="limit"),
    ApiTask("bind-tokens", change.BIND_TOKENS, BindingBody),
    ApiTask(
        "rotate-secret",
        ROTATE_SECRET,
        RotateSecretBody,
        once=show_once,
        answer=IssuedSystemUserRecord,
    ),
    ApiTask("register-key", REGISTER_CLIENT_KEY, KeysBody),
    ApiTask("register-certificate", REGISTER_CLIENT_CERTIFICATE, CertificateBody),
    ApiTask("use-private-key", change.USE_PRIVATE_KEY, UseKeysBody),
    ApiTask("use-certificate", change.USE_CERTIFICATE, CertificateBody),
    ApiTask(
        "use-client-secret",
        change.USE_CLIENT_SECRET,
        UseSecretBody,
        once=show_once,
        answer=IssuedSystemUserRecord,
    ),
)
