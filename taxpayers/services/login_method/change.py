"""Change how a system user logs in, and what its tokens must be bound to (RFC 9449, RFC 8705 3)."""

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.certificates import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import Credential, SystemUser
from taxpayers.operations import Operation
from taxpayers.services.credential_changes import (
    ROTATE_SECRET,
    IssuedSecret,
    create_secret,
    revoke_credential,
    store_new,
)
from taxpayers.services.history import Asked, context_of, makes, update_and_record
from taxpayers.services.live_credentials import networks_for_new
from taxpayers.services.login_method.registration import (
    REGISTER_CLIENT_CERTIFICATE,
    REGISTER_CLIENT_KEY,
    new_credentials,
    why_not_taken,
)
from taxpayers.services.management_clients import lock_to_change
from taxpayers.services.system_users import NewSystemUser, create_system_user
from taxpayers.validation import refuse_if

_ALREADY = {
    "": marked("{client_id} logs in with a secret already. Issue a new one instead."),
    PRIVATE_KEY_JWT: marked("{client_id} logs in with a private key already. Add a key instead."),
    TLS_CLIENT_AUTH: marked(
        "{client_id} logs in with a certificate already. Add another one instead."
    ),
}


def _why_already(method: str, owner: SystemUser, _at: datetime) -> str:
    """Why it does not change to this method; empty if it does."""
    if owner.token_endpoint_auth_method != method:
        return ""
    return _(_ALREADY[method]).format(client_id=owner.client_id)


USE_PRIVATE_KEY = Operation(
    actions.CHANGE_LOGIN_METHOD,
    "Change to a private key",
    "From now on it logs in with private_key_jwt only. Its secrets or certificates are revoked"
    " at this moment: agree with the operator of the ERP system when to do it.",
    refusal=partial(_why_already, PRIVATE_KEY_JWT),
    own_name="use_private_key",
)


USE_CERTIFICATE = Operation(
    actions.CHANGE_LOGIN_METHOD,
    "Change to a certificate",
    "From now on it logs in with tls_client_auth only, and its tokens are bound to its"
    " certificate. Its secrets and keys are revoked at this moment: agree with the operator of"
    " the ERP system when to do it.",
    refusal=lambda row, at: _why_already(TLS_CLIENT_AUTH, row, at) or why_not_taken(),
    own_name="use_certificate",
)


@makes((USE_PRIVATE_KEY, USE_CERTIFICATE), "system_user")
def use_public_credential(
    *,
    system_user: SystemUser,
    keys: str = "",
    certificate: str | None = None,
    expires_at: datetime | None = None,
    **asked: Unpack[Asked],
) -> SystemUser:
    """Let it log in with these keys or this certificate, and with nothing else from now on.

    As for `register_public_credential`. Raises ServiceError if it does so already.
    """
    method, operation, rows = _read(keys, certificate)
    owner, networks = _change(system_user, method, **asked)
    store_new(owner, rows, expires_at, context_of(operation, **asked), networks)
    return owner


USE_CLIENT_SECRET = Operation(
    actions.CHANGE_LOGIN_METHOD,
    "Change to a secret",
    "Its keys or certificates are removed at this moment, and its new secret is shown once. A"
    " private key is safer: nothing that it sends can be used again.",
    refusal=partial(_why_already, ""),
    own_name="use_client_secret",
)


@makes(USE_CLIENT_SECRET, "system_user")
def use_client_secret(
    *, system_user: SystemUser, expires_at: datetime | None = None, **asked: Unpack[Asked]
) -> IssuedSecret:
    """Let it log in with a new secret, as of `issue_secret`, and no longer with anything else."""
    owner, networks = _change(system_user, "", **asked)
    return create_secret(owner, expires_at, context_of(ROTATE_SECRET, **asked), networks)


@transaction.atomic
def register_system_user_without_secret(
    *,
    keys: str = "",
    certificate: str | None = None,
    credentials_expire_at: datetime | None = None,
    allowed_networks: Collection[str] = (),
    **given: Unpack[NewSystemUser],
) -> SystemUser:
    """As `register_system_user`, with keys or a certificate as for `use_public_credential`."""
    method, _operation, rows = _read(keys, certificate)
    context, owner, stored = create_system_user(**given, token_endpoint_auth_method=method)
    store_new(owner, rows, credentials_expire_at, context, allowed_networks, stored)
    return owner


BIND_TOKENS = Operation(
    actions.CHANGE_LOGIN_METHOD,
    "Bind its tokens to a key or a certificate",
    "A bound token is useless to a thief. From now on the system user gets only tokens that are"
    " bound as you choose, and its other tokens end at this moment. Its ERP"
    " system must be able to do it: agree with its operator when to change this.",
    own_name="bind_tokens",
)


@makes(BIND_TOKENS, "system_user")
def bind_tokens(
    *, system_user: SystemUser, binding: TokenBinding, **asked: Unpack[Asked]
) -> SystemUser:
    """Let it get only tokens that are bound so; others end at once. `BEARER`: any token again."""
    if binding == TokenBinding.TLS:
        refuse_if(why_not_taken())
    context = context_of(BIND_TOKENS, **asked)
    row = lock_to_change(system_user, context.by)
    update_and_record(row, context, token_binding=binding.value)
    return row


def _read(keys: str, certificate: str | None) -> tuple[str, Operation, list[Credential]]:
    """The login method, the operation that registers one more of it, and the first of it."""
    if certificate is None:
        return PRIVATE_KEY_JWT, REGISTER_CLIENT_KEY, new_credentials(keys, None)
    refuse_if(why_not_taken())
    return TLS_CLIENT_AUTH, REGISTER_CLIENT_CERTIFICATE, new_credentials("", certificate)


def _change(
    system_user: SystemUser, method: str, **asked: Unpack[Asked]
) -> tuple[SystemUser, list[str]]:
    """Returns also from which networks it could log in until now."""
    context = context_of(actions.CHANGE_LOGIN_METHOD, **asked)
    owner = lock_to_change(system_user, context.by)
    refuse_if(_why_already(method, owner, context.at))
    networks = networks_for_new(owner, None).split()
    for secret in owner.credentials.filter(revoked_at__isnull=True):
        revoke_credential(credential=secret, **asked)
    update_and_record(owner, context, token_endpoint_auth_method=method)
    return owner, networks
