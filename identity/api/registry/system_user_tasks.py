"""Tasks of a system user: block it, limit it, bind its tokens, change what it logs in with."""

from identity.api.framework.fields import (
    Body,
    Choice,
    End,
    PublicKeys,
    Reason,
    Taxpayers,
    Text,
    Texts,
    Truth,
)
from identity.api.framework.kinds import ApiTask
from identity.api.registry.ends import end_tasks
from identity.api.registry.system_user_records import IssuedSystemUserRecord, show_once
from identity.api.registry.taxpayers import tasks_by_reason
from taxpayers.certificates.names import NameKind
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.services import system_users
from taxpayers.services.credential_changes import ROTATE_SECRET
from taxpayers.services.ends import END_SYSTEM_USER_EARLIER, EXTEND_SYSTEM_USER
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.login_method.binding import BIND_TOKENS
from taxpayers.services.login_method.certificates import REGISTER_CLIENT_CERTIFICATE
from taxpayers.services.login_method.change import (
    USE_CERTIFICATE,
    USE_CLIENT_SECRET,
    USE_PRIVATE_KEY,
)
from taxpayers.services.login_method.keys import REGISTER_CLIENT_KEY

_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}


class LimitsBody(Body):
    """What it may do for other taxpayers at most; both empty: whatever they grant.

    only_on_behalf: it gets no token for its own taxpayer; left out: as it is.
    """

    allowed_permissions = Texts(source="permissions")
    allowed_taxpayers = Taxpayers(source="taxpayers")
    only_on_behalf = Truth(required=False)
    reason = Reason()


class BindingBody(Body):
    """What its tokens must be bound to."""

    token_binding = Choice(_BINDINGS, source="binding")
    reason = Reason()


_NAMES = {kind.value.removeprefix("tls_client_auth_"): kind for kind in NameKind}


class RotateSecretBody(Body):
    """A new secret beside the present one."""

    expires_at = End(required=False, help_text="Its last day. Left out: as long as is usual.")
    retire_old_at = End(required=False, help_text="The last day of the present ones.")
    allowed_networks = Texts(required=False, help_text="Left out: those of the present one.")
    reason = Reason()


class CertificateBody(Body):
    """A name in a certificate: from the certificate itself, or as a text."""

    certificate = Text(
        source="text",
        max_length=20_000,
        help_text="PEM, of which the subject is registered; or a name.",
    )
    name_kind = Choice(
        _NAMES, required=False, source="kind", help_text="Which name it is. Left out: it is PEM."
    )
    expires_at = End(required=False)
    reason = Reason()


class UseKeysBody(Body):
    """From now on it logs in with these keys."""

    keys = PublicKeys()
    expires_at = End(required=False)
    reason = Reason()


class KeysBody(UseKeysBody):
    """Public keys beside the present one."""

    allowed_networks = Texts(required=False)


class UseSecretBody(Body):
    """From now on it logs in with a new secret."""

    expires_at = End(required=False)
    reason = Reason()


TASKS = (
    *end_tasks("SystemUser", "expires_at", EXTEND_SYSTEM_USER, END_SYSTEM_USER_EARLIER),
    *tasks_by_reason(vars(system_users)),
    ApiTask("limits", LIMIT_SYSTEM_USER, LimitsBody, verb="limit"),
    ApiTask("bind-tokens", BIND_TOKENS, BindingBody),
    ApiTask(
        "rotate-secret",
        ROTATE_SECRET,
        RotateSecretBody,
        once=show_once,
        answer=IssuedSystemUserRecord,
    ),
    ApiTask("register-key", REGISTER_CLIENT_KEY, KeysBody),
    ApiTask("register-certificate", REGISTER_CLIENT_CERTIFICATE, CertificateBody),
    ApiTask("use-private-key", USE_PRIVATE_KEY, UseKeysBody),
    ApiTask("use-certificate", USE_CERTIFICATE, CertificateBody),
    ApiTask(
        "use-client-secret",
        USE_CLIENT_SECRET,
        UseSecretBody,
        once=show_once,
        answer=IssuedSystemUserRecord,
    ),
)
