"""The commands for protected APIs and their secrets (contract 2 and 3)."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import Q
from django.utils import timezone

from taxpayers.credentials import hint_of
from taxpayers.management.arguments import day
from taxpayers.management.command import Output
from taxpayers.management.operation_command import OperationCommand, Options
from taxpayers.management.table import Commands, command
from taxpayers.moments import format_moment
from taxpayers.services import ServiceError
from taxpayers.validation import validate_text
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis import registration
from tokens.protected_apis.registration import introspection_endpoint

_LONGEST = 255


class _ProtectedApiCommand(OperationCommand):
    """`API`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("api", metavar="API", help="its client ID, or its name")

    def find(self, options: Options) -> Any:
        """Raises ServiceError if there is none; a text that may be a secret is not repeated."""
        text = options["api"]
        row = ProtectedApi.objects.filter(Q(client_id=text) | Q(name=text)).first()
        if row is None:
            shown = validate_text(text, "the client ID or the name of the API", _LONGEST)
            raise ServiceError(
                f"There is no protected API {shown}. Register it first:"
                " manage.py register_protected_api NAME --audience AUDIENCE"
            )
        return row

    def data(self, row: ProtectedApi) -> dict[str, Any]:
        return {"client_id": row.client_id, "name": row.name, "is_active": row.is_active}


def _secret_data(issued: registration.IssuedApiSecret) -> dict[str, Any]:
    """The credentials for machines, the secret in clear."""
    return {
        "client_id": issued.credentials.client_id,
        "client_secret": issued.credentials.client_secret,
        "secret_hint": issued.secret.hint,
        "secret_expires_at": issued.secret.expires_at,
        "environment": settings.ENVIRONMENT,
        "introspection_endpoint": introspection_endpoint(),
    }


def _secret_text(issued: registration.IssuedApiSecret) -> str:
    """The credentials for people, the secret in clear."""
    return (
        f"client_id      {issued.credentials.client_id}\n"
        f"client_secret  {issued.credentials.client_secret}\n"
        f"valid until    {format_moment(issued.secret.expires_at)}\n"
        f"ask at         {introspection_endpoint()}\n"
        "\n"
        "Give both to the operator of the protected API. The secret is not shown again."
    )


class _Register(OperationCommand):
    operation = registration.REGISTER_PROTECTED_API
    fields = {
        "name": {"flag": "", "metavar": "NAME", "help": "name of the API, for staff"},
        "audience": {"required": True, "help": "audience of the tokens for it"},
        "secret_expires_at": day("--secret-expires", "last day of the secret"),
    }
    note = ""

    def answer(self, done: registration.IssuedApiSecret, options: Options) -> Output:
        api = done.protected_api
        data = {"name": api.name, "audience": api.audience}
        return Output(_secret_data(done) | data, _secret_text(done))


class _RotateSecret(_ProtectedApiCommand):
    operation = registration.ROTATE_API_SECRET
    fields = {
        "expires_at": day("--secret-expires", "last day of the new secret"),
        "retire_old_at": day("--retire-old", "last day of the old secret"),
    }
    note = ""

    def answer(self, done: registration.IssuedApiSecret, options: Options) -> Output:
        api = done.protected_api
        old = [s for s in registration.live_secrets(api, timezone.now()) if s.pk != done.secret.pk]
        data = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in old]
        text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the API has changed over:"
            f" manage.py revoke_protected_api_secret {api.client_id} {s.hint}"
            for s in old
        )
        return Output(_secret_data(done) | {"old": data}, _secret_text(done) + text)


class _RevokeSecret(_ProtectedApiCommand):
    operation = registration.REVOKE_API_SECRET

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("hint", metavar="SECRET_HINT", help="its last four characters")

    def find(self, options: Options) -> ProtectedApiSecret:
        """The newest secret that ends so. Raises ServiceError, which lists them, if none does."""
        owner, hint = super().find(options), hint_of(options["hint"])
        secrets: list[ProtectedApiSecret] = list(owner.credentials.order_by("-pk"))
        found = next((secret for secret in secrets if secret.hint == hint), None)
        if found is None:
            listed = ", ".join(map(str, secrets)) or "none"
            raise ServiceError(f"{owner} has no secret with this ending. Its secrets: {listed}.")
        return found

    def answer(self, done: ProtectedApiSecret, options: Options) -> Output:
        api, at = done.protected_api, timezone.now()
        live = registration.live_secrets(api, at)
        left = (
            f"It still has {', '.join(map(str, live))}."
            if live
            else "It has no other live secret, so it cannot ask. Next:"
            f" manage.py rotate_protected_api_secret {api.client_id}"
        )
        return Output(
            {
                "client_id": api.client_id,
                "secret_hint": done.hint,
                "revoked_at": done.revoked_at,
                "live_secrets": [other.hint for other in live],
            },
            f"{done} of {api} was revoked {format_moment(done.revoked_at or at)}. {left}",
        )


COMMANDS: Commands = {
    "register_protected_api": _Register,
    "rotate_protected_api_secret": _RotateSecret,
    "revoke_protected_api_secret": _RevokeSecret,
    "activate_protected_api": command(
        _ProtectedApiCommand,
        registration.ACTIVATE_PROTECTED_API,
        "{row} is active. It may ask again whether a token is active.",
    ),
    "deactivate_protected_api": command(
        _ProtectedApiCommand,
        registration.DEACTIVATE_PROTECTED_API,
        "{row} is not active. Whatever it asks is refused.",
    ),
}
