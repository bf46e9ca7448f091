"""System users: the list, the page of one, and its tasks (contract 3 and 4)."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from identity.staff.display import moment, named
from identity.staff.expiring import extend_tasks
from identity.staff.framework import badges
from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.export import Column, ExportingAdmin
from identity.staff.framework.filters import Choices, StateFilter, expires_within
from identity.staff.framework.lists import Context, column
from identity.staff.framework.search import limited_to, network_in
from identity.staff.framework.tasks import tasks_by_reason
from identity.staff.logins.secret_use import use_of_secrets
from identity.staff.system_users import login_methods, secret_tasks, system_user_tasks
from identity.staff.system_users.issue_credentials import ImportSystemUsers, IssueCredentials
from identity.staff.system_users.revoke_secrets import RevokeSecrets, shown_secret
from taxpayers.credentials import HINT_LENGTH
from taxpayers.models import SystemUser, Taxpayer
from taxpayers.models.credential import SLOTS
from taxpayers.services import system_users
from taxpayers.services.management_clients import why_only_operators
from taxpayers.standing.loaded_rows import credentials_of, standing_of_row, with_credentials

MAX_SECRETS = 20


class SystemUserStateFilter(StateFilter):
    def conditions(self, at: datetime) -> Choices:
        inactive = Taxpayer.objects.filter(is_active=False)
        no_secret = Q(last_secret_ends_at__isnull=True) | Q(last_secret_ends_at__lt=at)
        return {
            "no_secret": (gettext_lazy("No valid secret, key or certificate"), no_secret),
            "blocked": (gettext_lazy("Blocked"), Q(blocked_at__isnull=False)),
            "expired": (gettext_lazy("Expired"), Q(expires_at__lt=at)),
            "taxpayer": (badges.TAXPAYER_NOT_ACTIVE, Q(taxpayer__in=inactive)),
            **expires_within("expires_at", at),
        }


def _state_of(row: SystemUser) -> str:
    """What its next login gets: `active`, or the reason of each thing that refuses it."""
    standing = standing_of_row(row, timezone.now())
    missing = [] if standing.valid_credentials else ["no_valid_credential"]
    return " ".join([*missing, *(refused.reason for refused in standing.refusals)]) or "active"


def _credential_columns(number: int) -> tuple[Column, ...]:
    """Of one secret, key or certificate, the oldest first; empty if it has fewer."""

    def value(row: SystemUser, name: str) -> Any:
        credentials = credentials_of(row)[number - 1 : number]
        return next((getattr(one, name) if name else one for one in credentials), None)

    names = ("", "kind", "name", "expires_at", "last_used_at", "allowed_networks")
    return tuple(
        (f"credential_{number}_{name}".rstrip("_"), partial(value, name=name)) for name in names
    )


class SystemUserAdmin(ExportingAdmin):
    # Names and values are for programs, not translated, and those of the management API where it
    # has them. New columns come last: some programs count.
    exported = (
        *("client_id", "name"),
        *(("taxpayer", "taxpayer.identifier"), ("taxpayer_name", "taxpayer.name")),
        *("scopes", "logins_per_minute", "expires_at"),
        *("blocked_at", "blocked_by", "blocked_reason"),
        *(("registered_at", "created"), ("state", _state_of), "last_used_at", "login_method"),
        ("token_binding", lambda row: row.required_binding.value or "none"),
        *("allowed_permissions", "allowed_taxpayers"),
        *(one for number in SLOTS for one in _credential_columns(number)),
        "only_on_behalf",
    )
    bulk_tasks = (
        BulkTask(
            system_user_tasks.BlockSystemUser,
            gettext_lazy("Block the selected system users"),
            gettext_lazy(
                "From now on, every login of these system users is refused. Tokens that were"
                " already issued: APIs that check them with this service refuse them within 10"
                " seconds, others accept them for up to one hour. System users that are already"
                " blocked do not change."
            ),
            related=("usage",),
        ),
        BulkTask(
            extend_tasks.ExtendSystemUser,
            gettext_lazy("Extend the selected system users"),
            gettext_lazy("These system users can log in for longer."),
            extend_tasks.BulkExtendForm,
        ),
        BulkTask(
            RevokeSecrets,
            gettext_lazy("Revoke secrets, keys and certificates of the selected system users"),
            gettext_lazy(
                "They stop working now. This cannot be undone. After a change, revoke those that"
                " are no longer used. After a leak, revoke every one, or those that were created"
                " before it was closed; a system user without another one cannot log in before you"
                " issue or register it."
            ),
            related=("credentials", "usage"),
        ),
    )
    list_display = (
        column(
            "system_user",
            gettext_lazy("system user"),
            lambda row: named(row.name or "—", row.client_id),
        ),
        "taxpayer",
        "state",
        column("expires", gettext_lazy("expires"), lambda row: moment(row.expires_at)),
        column(
            "last_used",
            gettext_lazy("last used"),
            lambda row: moment(row.last_used_at, gettext("Never")),
        ),
    )
    joined = ("taxpayer", "usage")
    paths_to_taxpayers = ("taxpayer__",)
    list_filter = (SystemUserStateFilter,)
    search_help_text = gettext_lazy("Client ID, TIN, network or name")
    record_template = "staff/system_users/system_user.html"
    badge = staticmethod(badges.badge_of_system_user)
    tasks: ClassVar = (
        IssueCredentials,
        ImportSystemUsers,
        *tasks_by_reason(
            vars(system_users),
            system_user_tasks.BlockSystemUser,
            system_user_tasks.UnblockSystemUser,
        ),
        secret_tasks.RotateSecret,
        login_methods.RegisterClientKey,
        login_methods.RegisterClientCertificate,
        extend_tasks.ExtendSystemUser,
        system_user_tasks.ChangeSystemUser,
        extend_tasks.EndSystemUserEarlier,
        system_user_tasks.LimitSystemUser,
        login_methods.UsePrivateKey,
        login_methods.UseCertificate,
        login_methods.UseClientSecret,
        system_user_tasks.BindTokens,
        secret_tasks.ChangeSecret,
        secret_tasks.RetireSecret,
        secret_tasks.RevokeSecret,
    )

    def search_conditions(self, term: str) -> Iterable[Q]:
        if term.startswith("ci_"):
            return [Q(client_id__startswith=term)]
        if (network := network_in(term)) is not None:
            return [limited_to(network)]
        conditions = [Q(name__has_words=term), *super().search_conditions(term)]
        hint = term.removeprefix("…")
        return [Q(credentials__hint=hint), *conditions] if len(hint) == HINT_LENGTH else conditions

    def lead(self, record: SystemUser) -> str:
        return format_html("{} · {} · <code>{}</code>", record, record.taxpayer, record.client_id)

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        return with_credentials(super().get_queryset(request))

    def record_context(self, request: HttpRequest, record: SystemUser, at: datetime) -> Context:
        secrets = self._secrets(request, record, at)
        used = None
        if secrets and request.user.has_perm("tokens.view_loginevent"):
            used = use_of_secrets(record, [secret["row"] for secret in secrets], at)
            for secret in secrets:
                secret["use"] = used.of[secret["row"].pk]
        return {
            "for_operators": why_only_operators(record),
            "taxpayer_state": badges.badge_of_taxpayer(record.taxpayer, at),
            "secrets": secrets,
            "used": used,
        }

    def _secrets(
        self, request: HttpRequest, record: SystemUser, at: datetime
    ) -> list[dict[str, Any]] | None:
        if not request.user.has_perm("taxpayers.view_credential"):
            return None
        secrets = list(record.credentials.order_by("-pk")[:MAX_SECRETS])
        kinds = (secret_tasks.ChangeSecret, secret_tasks.RetireSecret, secret_tasks.RevokeSecret)
        only_operators = why_only_operators(record)
        tasks = [
            task
            for task in (kind(self) for kind in kinds)
            if task.is_allowed(request) and not (task.gives_access and only_operators)
        ]
        return [
            shown_secret(secret, secrets, at)
            | {"buttons": [task.button_of(secret) for task in tasks if secret.is_live(at)]}
            for secret in secrets
        ]
