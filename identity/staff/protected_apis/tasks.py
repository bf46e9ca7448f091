"""Tasks for protected APIs: register one, its secrets, stop it and start it again (contract 2)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.record_pages import Text
from identity.staff.framework.secret_once import (
    HandOverFact,
    SecretOnceTask,
    check_form_not_reused,
    moment_with_zone,
    newest_secret_id,
)
from identity.staff.framework.tasks import OperationTask, Task
from identity.staff.protected_apis.forms import RegisterApiForm, RevokeApiSecretForm, RotateApiForm
from taxpayers.services import Author
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import (
    ACTIVATE_PROTECTED_API,
    DEACTIVATE_PROTECTED_API,
    MAX_LIVE_SECRETS,
    IssuedApiSecret,
    issue_api_secret,
    live_secrets,
    register_protected_api,
    revoke_api_secret,
)
from tokens.protected_apis.secret_once import introspection_endpoint, introspection_example


class _ApiSecretTask(SecretOnceTask):
    """A task whose result is a new secret of a protected API."""

    secret_template = "staff/protected_apis/new_secret.html"
    example_title = gettext_lazy("A working request")

    def hand_over_facts(self, result: IssuedApiSecret) -> list[HandOverFact]:
        credentials = result.credentials
        return [
            HandOverFact(_("Protected API"), result.protected_api.name),
            HandOverFact(_("Audience"), result.protected_api.audience),
            HandOverFact(_("Environment"), settings.ENVIRONMENT),
            HandOverFact(_("Ask at"), introspection_endpoint()),
            HandOverFact(_("Client ID"), credentials.client_id, "client-id"),
            HandOverFact(
                _("Client secret"), credentials.client_secret, "client-secret", is_secret=True
            ),
            HandOverFact(_("Secret valid until"), moment_with_zone(result.secret.expires_at)),
        ]

    def example(self, result: IssuedApiSecret) -> str:
        return introspection_example(result.credentials)

    def next_record(self, result: IssuedApiSecret) -> Model:
        return result.protected_api


class RegisterProtectedApi(_ApiSecretTask):
    name = "register_protected_api"
    app_label = "tokens"
    title = gettext_lazy("Register a protected API")
    button_label = gettext_lazy("Register a protected API")
    description = gettext_lazy(
        "The API can then ask whether a token is active. It cannot log in. The next page shows its"
        " secret once. Have a safe way ready to give the secret to the operator of the API."
    )
    icon = "api"
    variant = "primary"
    form = RegisterApiForm
    is_for_record = False

    def perform(
        self, record: None, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedApiSecret:
        # Submitted twice, the second is refused: each API has another name.
        return register_protected_api(
            name=data["name"],
            audience=data["audience"],
            secret_expires_at=data["secret_expires"],
            reason=data["reason"],
            by=by,
            at=at,
        )


class RotateApiSecret(_ApiSecretTask):
    name = "rotate_secret"
    title = gettext_lazy("Issue a new secret")
    button_label = gettext_lazy("Issue a new secret")
    description = gettext_lazy(
        "The next page shows the new secret once. A secret that is valid now keeps working, so that"
        " the API can change to the new one without a break."
    )
    icon = "key"
    form = RotateApiForm

    def unavailable_reason(self, record: ProtectedApi, at: datetime) -> Text:
        live = live_secrets(record, at)
        if len(live) < MAX_LIVE_SECRETS:
            return ""
        return _(
            "There are already two secrets. The newest is {secret}. First revoke the secret that is"
            " no longer used."
        ).format(secret=live[-1])

    def initial(self, request: HttpRequest, record: ProtectedApi, at: datetime) -> dict[str, Any]:
        return {"newest": newest_secret_id(record)}

    @transaction.atomic
    def perform(
        self, record: ProtectedApi, data: dict[str, Any], *, by: Author, at: datetime
    ) -> IssuedApiSecret:
        check_form_not_reused(record, data)
        return issue_api_secret(
            protected_api=record,
            expires_at=data["expires"],
            retire_old_at=data["retire_old"],
            reason=data["reason"],
            by=by,
            at=at,
        )


class RevokeApiSecret(Task):
    name = "revoke_secret"
    title = gettext_lazy("Revoke a secret")
    button_label = gettext_lazy("Revoke a secret")
    description = gettext_lazy(
        "The secret stops working now. This cannot be undone. What the API asks with it is refused."
    )
    icon = "key_off"
    variant = "danger"
    form = RevokeApiSecretForm
    template = "staff/protected_apis/revoke_secret.html"

    def unavailable_reason(self, record: ProtectedApi, at: datetime) -> Text:
        return "" if live_secrets(record, at) else _("It has no valid secret.")

    def perform(
        self, record: ProtectedApi, data: dict[str, Any], *, by: Author, at: datetime
    ) -> ProtectedApiSecret:
        secret = record.credentials.get(pk=data["secret"])
        return revoke_api_secret(secret=secret, reason=data["reason"], by=by, at=at)

    def success_message(self, result: ProtectedApiSecret) -> str:
        return _("The secret {secret} is revoked.").format(secret=result)

    def next_record(self, result: ProtectedApiSecret) -> Model:
        return result.protected_api


class DeactivateProtectedApi(OperationTask):
    operation = DEACTIVATE_PROTECTED_API
    app_label = "tokens"
    button_label = gettext_lazy("Deactivate")
    icon = "block"
    done = gettext_lazy("{name} is no longer active.")


class ActivateProtectedApi(OperationTask):
    operation = ACTIVATE_PROTECTED_API
    app_label = "tokens"
    button_label = gettext_lazy("Activate")
    icon = "check_circle"
    variant = "primary"
    done = gettext_lazy("{name} is active.")
