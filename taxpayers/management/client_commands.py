"""The commands for system users and what they log in with (contract 6)."""

from functools import partial
from typing import Any

from django.utils import timezone

from taxpayers.management.arguments import EARLIER, add_network_options, day, file, networks_text
from taxpayers.management.command import Output
from taxpayers.management.operation_command import CredentialCommand, Options, SystemUserCommand
from taxpayers.management.shown_credentials import shown_credentials
from taxpayers.management.table import Commands, command
from taxpayers.models import Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.operations import by_reason_in
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import IssuedSecret, system_users
from taxpayers.services.credential_changes import RETIRE_SECRET, REVOKE_SECRET, ROTATE_SECRET
from taxpayers.services.live_credentials import CHANGE_SECRET
from taxpayers.services.login_method.registration import (
    REGISTER_CLIENT_CERTIFICATE,
    REGISTER_CLIENT_KEY,
)

_networks = partial(add_network_options, present="; not given: from where the present one may")
# What each login method has, and the command for one more of it.
_NEXT = {
    "key": "register_client_key {client_id} FILE",
    "certificate": "register_client_certificate {client_id} --certificate FILE",
    "secret": "rotate_secret {client_id}",
}


class _BlockSystemUser(SystemUserCommand):
    operation = system_users.BLOCK_SYSTEM_USER

    def text(self, row: SystemUser) -> str:
        since = format_moment(row.blocked_at) if row.blocked_at else ""
        return (
            f"{row.client_id} ({row.name}) has been blocked since {since} by {row.blocked_by}:"
            f" {row.blocked_reason}\n{self.operation.effect}"
        )


class _Registration(SystemUserCommand):
    note = ""

    def answer(self, done: Any, options: Options) -> Output:
        return shown_credentials(self.find(options))


class _RotateSecret(SystemUserCommand):
    operation = ROTATE_SECRET
    fields = {
        "expires_at": day("--secret-expires", "last day of the new secret"),
        "retire_old_at": day("--retire-old", "last day of the old secret"),
        "allowed_networks": _networks,
    }
    note = ""

    def answer(self, done: IssuedSecret, options: Options) -> Output:
        present = done.system_user.credentials.filter(slot__isnull=False)
        secrets = present.exclude(pk=done.secret.pk)
        old = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in secrets]
        old_text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the ERP has changed over:"
            f" manage.py revoke_secret {done.system_user.client_id} {s.hint}"
            for s in secrets
        )
        return Output(secret_data(done) | {"old": old}, secret_text(done) + old_text)


class _ChangeSecret(CredentialCommand):
    operation = CHANGE_SECRET
    fields = {"allowed_networks": partial(add_network_options, required=True)}

    def data(self, row: Credential) -> dict[str, Any]:
        return {**super().data(row), "allowed_networks": row.allowed_networks.split()}

    def text(self, row: Credential) -> str:
        return f"{row} of {row.system_user.client_id} may be used {networks_text(row)}."


class _RetireSecret(CredentialCommand):
    operation = RETIRE_SECRET
    fields = {"last_moment": EARLIER}

    def data(self, row: Credential) -> dict[str, Any]:
        return {**super().data(row), "secret_expires_at": row.expires_at}

    def text(self, row: Credential) -> str:
        return f"{row} of {row.system_user.client_id} works until {format_moment(row.expires_at)}."


class _RevokeSecret(CredentialCommand):
    operation = REVOKE_SECRET

    def answer(self, done: Credential, options: Options) -> Output:
        owner, at = done.system_user, timezone.now()
        live = [other for other in owner.credentials.all() if other.is_live(at)]
        kind = owner.credential_kind.value
        following = _NEXT[kind].format(client_id=owner.client_id)
        left = (
            f"It still has {live[0]}."
            if live
            else f"It has no other live {kind}, so it cannot log in. Next: manage.py {following}"
        )
        revoked = format_moment(done.revoked_at or at)
        hints = [other.hint for other in live]
        return Output(
            {**self.data(done), "revoked_at": done.revoked_at, "live_secrets": hints},
            f"{done} of {owner.client_id} was revoked {revoked}. {left}",
        )


_DONE = {"unblock_system_user": "{row.client_id} ({row.name}) is not blocked: it may log in."}
COMMANDS: Commands = {
    **{
        record.name: command(SystemUserCommand, record, _DONE.get(record.name, ""))
        for record in by_reason_in(vars(system_users))
    },
    "block_system_user": _BlockSystemUser,
    "register_client_certificate": command(
        _Registration,
        REGISTER_CLIENT_CERTIFICATE,
        fields={
            "certificate": file(
                "a certificate of the ERP system (PEM; -: stdin): its subject is registered",
                required=True,
            ),
            "expires_at": day("--expires", "last day of the registration"),
        },
    ),
    "register_client_key": command(
        _Registration,
        REGISTER_CLIENT_KEY,
        fields={
            "keys": file("the public key: JWK, JWK Set or PEM; -: stdin", flag=""),
            "expires_at": day("--expires", "last day of the key"),
            "allowed_networks": _networks,
        },
    ),
    "rotate_secret": _RotateSecret,
    "change_secret": _ChangeSecret,
    "retire_secret": _RetireSecret,
    "revoke_secret": _RevokeSecret,
}
