"""`/api/v1/credentials/current`: a client sees its credentials, and ends the secret it used."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.models import Credential, SystemUser
from taxpayers.sandbox.clients import sandbox_name
from taxpayers.services import Author, LastLiveCredential, revoke_credential
from tokens.access_tokens.claims import taxpayer_claim
from tokens.answers.description import format_moment_with_offset
from tokens.http import rfc3339, rfc3339_or_none
from tokens.rate_limits.quota import CounterState, current_quota
from tokens.self_service.view import SelfServiceView, parameters_of

RECENTLY = timedelta(days=30)
_MOST = 20  # a client that gets a new secret each day has more in 30 days


def own_secrets(system_user_id: int, at: datetime) -> list[Credential]:
    """The live ones, then those that have ended within 30 days, the newest first; one query."""
    since = at - RECENTLY
    secrets = Credential.objects.filter(
        Q(revoked_at=None) | Q(revoked_at__gte=since),
        system_user=system_user_id,
        expires_at__gte=since,
    )
    # A live one has a slot.
    found = secrets.order_by(F("slot").asc(nulls_last=True), "-pk")[:_MOST]
    return sorted(
        found.select_related("system_user__usage"),
        key=lambda secret: (not secret.is_live(at), -secret.pk),
    )


def secret_as_json(secret: Credential, issued_by: int, at: datetime) -> dict[str, Any]:
    """One in JSON, a key or certificate with its name; `issued_by`: the token comes from it."""
    return _named(secret) | {
        "hint": secret.hint,
        "state": secret.state(at),
        "issued_this_token": secret.pk == issued_by,
        "created_at": rfc3339(secret.created_at),
        "expires_at": rfc3339(secret.expires_at),
        "revoked_at": rfc3339_or_none(secret.revoked_at),
        "last_used_at": rfc3339_or_none(secret.last_used_at),
        "allowed_networks": secret.allowed_networks.split(),  # none: from anywhere
    }


def _named(secret: Credential) -> dict[str, str]:
    if secret.is_certificate:
        return {"certificate": secret.name}
    return {"kid": secret.name} if secret.is_key else {}


REVOKE_LAST = "revoke_last"
_REASON = "Revoked by the client itself, with the token of login {login}. Reference: {reference}"
_LAST = (
    "This is the last live secret of this client: without it no login gets a token until the tax"
    " authority issues another one. Have a new secret issued and put it in place first. If this one"
    f" may be in wrong hands, repeat the request with ?{REVOKE_LAST}=true to revoke it now."
)
_SANDBOX = (
    "This client is of the sandbox: its secret is public, so it cannot be revoked. Use one of"
    " your own system users to test that."
)
_OTHERS_LEFT = (
    "The secret is revoked, and no token that it issued is active any more. Log in with another"
    " secret: the latest one is valid until {end}."
)
_NONE_LEFT = (
    "The secret is revoked, and no token that it issued is active any more. No valid secret is"
    " left: this client gets no token until the tax authority issues a new secret. Ask the tax"
    " authority."
)


class LastSecretConflict(APIException):
    """409: the client would lock itself out, and has not confirmed that it means to."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = _LAST


class CredentialsView(SelfServiceView):
    """The client of the token, its secrets and its limit. A token of any login opens it."""

    http_method_names = ("get", "head", "delete")

    def get(self, request: Request) -> Response:
        """What the client is, as the registry has it now. It counts no login."""
        login, at = self.caller.login, self.caller.at
        client = login.client
        user = SystemUser.objects.select_related("usage").get(pk=client.id)
        secrets = own_secrets(client.id, at)
        return Response(
            {
                "client_id": client.client_id,
                "name": user.name,
                "taxpayer": taxpayer_claim(client.taxpayer),
                "scopes": client.scopes,
                "expires_at": rfc3339_or_none(client.expires_at),
                "allowed_permissions": client.allowed_permissions,  # none: all that are granted
                # Which ones is not shown: a token is for one taxpayer, and others may read it.
                "is_limited_to_taxpayers": client.has_allowed_taxpayers,
                "only_on_behalf": client.only_on_behalf,
                "secrets": [secret_as_json(s, login.credential.id, at) for s in secrets],
                "rate_limit": self._rate_limit(user),
                "source_address": self.source_address,
                "environment": settings.ENVIRONMENT,
            }
        )

    def delete(self, request: Request) -> Response:
        """Revokes the secret that the token comes from, so that this token ends, too."""
        login, at = self.caller.login, self.caller.at
        secret = self._revoked(spare_last=not _may_be_last(request))
        live = [one for one in own_secrets(login.client.id, at) if one.is_live(at)]
        end = format_moment_with_offset(max(s.expires_at for s in live)) if live else ""
        return Response(
            {
                "revoked": {"hint": secret.hint, "revoked_at": rfc3339_or_none(secret.revoked_at)},
                "live_secrets": [secret_as_json(s, login.credential.id, at) for s in live],
                "description": _OTHERS_LEFT.format(end=end) if live else _NONE_LEFT,
            }
        )

    def _revoked(self, *, spare_last: bool) -> Credential:
        token, login = self.caller.token, self.caller.login
        if sandbox_name(token.client_id):
            raise LastSecretConflict(_SANDBOX)
        try:
            return revoke_credential(
                credential=Credential.objects.select_related("system_user").get(
                    pk=login.credential.id
                ),
                spare_last=spare_last,
                reason=_REASON.format(login=token.jti, reference=self.reference),
                by=Author.client(token.client_id, self.source_address),
                at=self.caller.at,
            )
        except LastLiveCredential:
            raise LastSecretConflict from None

    def _rate_limit(self, user: SystemUser) -> dict[str, Any]:
        limit = self.caller.login.client.logins_per_minute
        counter = CounterState(user.usage.window_started_at, user.usage.used)
        quota = current_quota(counter, limit, self.caller.at)
        return {
            "logins_per_minute": limit,  # 0: unlimited, still counted
            "remaining": quota.remaining if limit else None,
            "resets_at": rfc3339(quota.resets_at) if quota.used else None,
        }


def _may_be_last(request: Request) -> bool:
    answer = parameters_of(request, REVOKE_LAST).get(REVOKE_LAST, "false")
    if answer not in ("true", "false"):
        raise ParseError(f"The parameter {REVOKE_LAST} must be true or false.")
    return answer == "true"


credentials = CredentialsView.as_view()
