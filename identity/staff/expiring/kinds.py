"""The kinds of records that end: which rows count, whose they are, and who may extend them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.framework.lists import Text
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.sandbox.users import sandbox_users
from tokens.models import ProtectedApi, ProtectedApiSecret


@dataclass(frozen=True, slots=True)
class EndingKind:
    """`end` is the field of its last moment, by which an index finds `rows`.

    Clients of the sandbox are not among them: they end by design, and are not renewed.

    `extend_task` is the name of the task that extends it; of secrets, that issues a new one.
    `shown_with`: the kind of record on whose page its rows are, if they have none.
    """

    name: str
    title: Text
    plural: Text
    model: type[Model]
    end: str
    rows: "Callable[[], QuerySet[Any]]"
    related: tuple[str, ...]  # what the page shows besides
    extend_task: str
    owner: Callable[[Any], Taxpayer | ProtectedApi] = lambda row: row.taxpayer  # must be called
    page: Callable[[Any], Model] = lambda row: row  # the record whose page shows it
    is_extended: bool = True  # False: it is replaced by a new one
    shown_with: type[Model] | None = None
    others: tuple[str, ...] = ()  # the path to all secrets of its owner

    def may_be_seen(self, request: HttpRequest) -> bool:
        opts = (self.shown_with or self.model)._meta
        return request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}")

    def task_name(self, page: Model) -> str:
        """The name of the task for a row of this page; a key is replaced by a new key."""
        if self.is_extended or not isinstance(page, SystemUser):
            return self.extend_task
        return _REPLACED_BY.get(page.credential_kind, self.extend_task)

    def load(self, keys: list[int]) -> dict[int, Any]:
        rows = self.model._default_manager.select_related(*self.related)
        return dict(rows.prefetch_related(*self.others).in_bulk(keys))


_REPLACED_BY = {
    CredentialKind.KEY: "register_client_key",
    CredentialKind.CERTIFICATE: "register_client_certificate",
}


KINDS = (
    EndingKind(
        name="secret",
        title=gettext_lazy("Secret, key or certificate"),
        plural=gettext_lazy("Secrets, keys and certificates"),
        model=Credential,
        end="expires_at",
        rows=lambda: Credential.objects.filter(slot__isnull=False).exclude(
            system_user__in=sandbox_users()
        ),
        owner=lambda row: row.system_user.taxpayer,
        page=lambda row: row.system_user,
        related=("system_user__taxpayer", "system_user__usage"),
        others=("system_user__credentials",),
        extend_task="rotate_secret",
        is_extended=False,
    ),
    EndingKind(
        name="system_user",
        title=gettext_lazy("System user"),
        plural=gettext_lazy("System users"),
        model=SystemUser,
        end="expires_at",
        rows=lambda: SystemUser.objects.exclude(pk__in=sandbox_users()),
        related=("taxpayer", "usage"),
        extend_task="extend_system_user",
    ),
    EndingKind(
        name="permission",
        title=gettext_lazy("Permission"),
        plural=gettext_lazy("Permissions"),
        model=GrantedPermission,
        end="valid_until",
        rows=lambda: GrantedPermission.objects.filter(revoked_at=None),
        related=("taxpayer", "intermediary__taxpayer"),
        extend_task="extend_permission",
    ),
    EndingKind(
        name="intermediary",
        title=gettext_lazy("Intermediary"),
        plural=gettext_lazy("Intermediaries"),
        model=Intermediary,
        end="active_until",
        rows=lambda: Intermediary.objects.filter(is_active=True),
        related=("taxpayer",),
        extend_task="extend_intermediary",
    ),
    EndingKind(
        name="api_secret",
        title=gettext_lazy("Secret of a protected API"),
        plural=gettext_lazy("Secrets of protected APIs"),
        model=ProtectedApiSecret,
        end="expires_at",
        # No index: an authority has few APIs.
        rows=lambda: ProtectedApiSecret.objects.filter(
            revoked_at=None, protected_api__is_active=True
        ),
        owner=lambda row: row.protected_api,
        page=lambda row: row.protected_api,
        related=("protected_api",),
        others=("protected_api__credentials",),
        extend_task="rotate_secret",
        is_extended=False,
        shown_with=ProtectedApi,
    ),
)
KIND_NAMES = {kind.name: kind for kind in KINDS}
