"""The tasks of a system user and of its credentials, named like the commands of operators."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db.models import Model
from rest_framework import serializers

from identity.api.framework.fields import Body, End, Taxpayers, Text, Texts
from identity.api.framework.kinds import Change, Once, Task, Values
from identity.api.framework.problems import Problem
from identity.api.registry.public_keys import PublicKeys
from identity.api.registry.system_user_records import IssuedSystemUserRecord, show_once
from identity.api.registry.system_users import refuse_management
from identity.api.registry.taxpayers import ReasonBody
from taxpayers.certificates.names import NameKind
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services import (
    bind_tokens,
    block_system_user,
    change_secret,
    issue_secret,
    limit_system_user,
    register_client_certificate,
    register_client_keys,
    retire_secret,
    revoke_secret,
    unblock_system_user,
    use_certificate,
    use_client_secret,
    use_private_key,
)

_CREDENTIAL = {"credential": "The id of the secret, key or certificate."}
_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}
_NAMES = {kind.value.removeprefix("tls_client_auth_"): kind for kind in NameKind}
_Act = Callable[[SystemUser, Values, Change], Model | Once]


class LimitsBody(Body):
    """What it may do for other taxpayers at most; both empty: whatever they grant."""

    permissions = Texts()
    taxpayers = Taxpayers()
    reason = Text()


class RotateSecretBody(Body):
    """A new secret beside the present one."""

    expires_at = End(required=False, help_text="Its last day. Left out: as long as is usual.")
    retire_old_at = End(required=False, help_text="The last day of the present ones.")
    allowed_networks = Texts(required=False, help_text="Left out: those of the present one.")


class KeysBody(Body):
    """Public keys beside the present one."""

    keys = PublicKeys()
    expires_at = End(required=False)
    allowed_networks = Texts(required=False)


class CertificateBody(Body):
    """A name in a certificate: from the certificate itself, or as a text."""

    certificate = Text(help_text="PEM, of which the subject is registered; or a name.")
    name_kind = serializers.ChoiceField(
        sorted(_NAMES), required=False, help_text="Which name it is. Left out: it is PEM."
    )
    expires_at = End(required=False)


class UseKeysBody(Body):
    """From now on it logs in with these keys."""

    keys = PublicKeys()
    expires_at = End(required=False)
    reason = Text()


class UseCertificateBody(CertificateBody):
    """From now on it logs in with a certificate with this name."""

    reason = Text()


class UseSecretBody(Body):
    """From now on it logs in with a new secret."""

    expires_at = End(required=False)
    reason = Text()


class BindingBody(Body):
    """What its tokens must be bound to."""

    token_binding = serializers.ChoiceField(sorted(_BINDINGS))
    reason = Text()


class RetireBody(Body):
    """An earlier last day of a secret."""

    expires_at = End()
    reason = Text()


class NetworksBody(Body):
    """From where a secret or key may be used; none: from anywhere."""

    allowed_networks = Texts()
    reason = Text()


def _of_client(act: _Act) -> Any:
    """Only for system users that are no programs of the authority."""

    @wraps(act)
    def checked(row: SystemUser, values: Values, address: Values, change: Change) -> Model | Once:
        refuse_management(row.scopes)
        return act(row, values, change)

    return checked


def _of_credential(act: Callable[[ClientSecret, Values, Change], Any]) -> Any:
    """The same for one of its secrets, keys or certificates."""

    @wraps(act)
    def checked(row: SystemUser, values: Values, address: Values, change: Change) -> Model:
        refuse_management(row.scopes)
        number = str(address["credential"])
        found = row.secrets.filter(pk=int(number)).first() if len(number) < 19 else None
        if found is None:
            raise Problem("not_found", "This system user has no such secret, key or certificate.")
        act(found, values, change)
        return row

    return checked


def _limit(row: SystemUser, values: Values, change: Change) -> Model:
    return limit_system_user(system_user=row, **values, **change.context)


def _rotate(row: SystemUser, values: Values, change: Change) -> Once:
    return show_once(issue_secret(system_user=row, **values, **change.context))


def _register_keys(row: SystemUser, values: Values, change: Change) -> Model:
    register_client_keys(system_user=row, **values, **change.context)
    return row


def _register_certificate(row: SystemUser, values: Values, change: Change) -> Model:
    register_client_certificate(system_user=row, **_named(values), **change.context)
    return row


def _use_certificate(row: SystemUser, values: Values, change: Change) -> Model:
    return use_certificate(
        system_user=row, reason=values["reason"], **_named(values), **change.context
    )


def _named(values: Values) -> dict[str, Any]:
    kind = _NAMES.get(values.get("name_kind", ""))
    return {
        "text": values["certificate"],
        "kind": kind,
        "expires_at": values.get("expires_at"),
    }


def _bind(row: SystemUser, values: Values, change: Change) -> Model:
    binding = _BINDINGS[values["token_binding"]]
    return bind_tokens(system_user=row, binding=binding, reason=values["reason"], **change.context)


TASKS = (
    Task(
        "block",
        "Block the system user",
        ReasonBody,
        _of_client(
            lambda row, values, change: block_system_user(
                system_user=row, **values, **change.context
            )
        ),
        "From now on its logins are refused, and its tokens end.",
    ),
    Task(
        "unblock",
        "Unblock the system user",
        ReasonBody,
        _of_client(
            lambda row, values, change: unblock_system_user(
                system_user=row, **values, **change.context
            )
        ),
    ),
    Task("limits", "Limit what it may do for others", LimitsBody, _of_client(_limit)),
    Task(
        "rotate-secret",
        "Issue a new secret",
        RotateSecretBody,
        _of_client(_rotate),
        "Beside the present one, so that the ERP system can change over without downtime. Only this"
        " answer has it.",
        IssuedSystemUserRecord,
    ),
    Task("register-key", "Register public keys", KeysBody, _of_client(_register_keys)),
    Task(
        "register-certificate",
        "Register a certificate",
        CertificateBody,
        _of_client(_register_certificate),
    ),
    Task(
        "use-private-key",
        "Let it log in with a private key",
        UseKeysBody,
        _of_client(
            lambda row, values, change: use_private_key(system_user=row, **values, **change.context)
        ),
        "Its secrets are revoked.",
    ),
    Task(
        "use-certificate",
        "Let it log in with a certificate",
        UseCertificateBody,
        _of_client(_use_certificate),
        "Its secrets or keys are revoked.",
    ),
    Task(
        "use-client-secret",
        "Let it log in with a secret",
        UseSecretBody,
        _of_client(
            lambda row, values, change: show_once(
                use_client_secret(system_user=row, **values, **change.context)
            )
        ),
        "Its keys or certificates are removed. Only this answer has the secret.",
        IssuedSystemUserRecord,
    ),
    Task("bind-tokens", "Bind its tokens to a key", BindingBody, _of_client(_bind)),
    Task(
        "revoke",
        "Revoke a secret, key or certificate",
        ReasonBody,
        _of_credential(
            lambda secret, values, change: revoke_secret(secret=secret, **values, **change.context)
        ),
        "Now and for good. Its tokens end.",
        before="credentials/<int:credential>/",
        parameters=_CREDENTIAL,
    ),
    Task(
        "retire",
        "Let a secret, key or certificate end earlier",
        RetireBody,
        _of_credential(
            lambda secret, values, change: retire_secret(
                secret=secret,
                last_moment=values["expires_at"],
                reason=values["reason"],
                **change.context,
            )
        ),
        before="credentials/<int:credential>/",
        parameters=_CREDENTIAL,
    ),
    Task(
        "networks",
        "Change from where a secret or key may be used",
        NetworksBody,
        _of_credential(
            lambda secret, values, change: change_secret(secret=secret, **values, **change.context)
        ),
        before="credentials/<int:credential>/",
        parameters=_CREDENTIAL,
    ),
)
