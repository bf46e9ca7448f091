"""Tasks for protected APIs: register one, its secrets, stop it and start it again (contract 2)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

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
    REGISTER_PROTECTED_API,
    REVOKE_API_SECRET,
    ROTATE_API_SECRET,
    IssuedApiSecret,
    issue_api_secret,
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
    operation = REGISTER_PROTECTED_API
    app_label = "tokens"
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
    operation = ROTATE_API_SECRET
    icon = "key"
    form = RotateApiForm

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
    operation = REVOKE_API_SECRET
    icon = "key_off"
    form = RevokeApiSecretForm
    template = "staff/protected_apis/revoke_secret.html"

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
