"""The kinds of records that end: which rows count, whose they are, and who may extend them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.framework.lists import Text
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser
from taxpayers.sandbox.users import sandbox_users
from tokens.models import ProtectedApiSecret


@dataclass(frozen=True, slots=True)
class EndingKind:
    """Clients of the sandbox are not among its rows: they end by design, and are not renewed."""

    name: str
    title: Text
    plural: Text
    permission: str  # to see them
    end: str  # the field of its last moment; an index finds `rows` by it
    rows: "Callable[[], QuerySet[Any]]"
    related: tuple[str, ...]  # what the page shows besides
    part_of: str = ""  # the record on whose page it is replaced; empty: it is extended on its page

    def may_be_seen(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)

    @property
    def model(self) -> type[Model]:
        return self.rows().model

    @property
    def is_extended(self) -> bool:
        return not self.part_of

    def page(self, row: Any) -> Any:
        return getattr(row, self.part_of) if self.part_of else row

    def task_name(self, page: Any = None) -> str:
        """The name of the task for a row of this page; a key is replaced by a new key."""
        if self.is_extended:
            return f"extend_{self.name}"
        kind = page.credential_kind if isinstance(page, SystemUser) else CredentialKind.SECRET
        return _REPLACED_BY[kind]

    def load(self, keys: list[int]) -> dict[int, Any]:
        others = [f"{self.part_of}__credentials"] if self.part_of else []
        rows = self.model._default_manager.select_related(*self.related)
        return dict(rows.prefetch_related(*others).in_bulk(keys))


_REPLACED_BY = {
    CredentialKind.SECRET: "rotate_secret",
    CredentialKind.KEY: "register_client_key",
    CredentialKind.CERTIFICATE: "register_client_certificate",
}


KINDS = (
    EndingKind(
        name="secret",
        title=gettext_lazy("Secret, key or certificate"),
        plural=gettext_lazy("Secrets, keys and certificates"),
        permission="taxpayers.view_credential",
        end="expires_at",
        rows=lambda: Credential.objects.filter(slot__isnull=False).exclude(
            system_user__in=sandbox_users()
        ),
        related=("system_user__taxpayer", "system_user__usage"),
        part_of="system_user",
    ),
    EndingKind(
        name="system_user",
        title=gettext_lazy("System user"),
        plural=gettext_lazy("System users"),
        permission="taxpayers.view_systemuser",
        end="expires_at",
        rows=lambda: SystemUser.objects.exclude(pk__in=sandbox_users()),
        related=("taxpayer", "usage"),
    ),
    EndingKind(
        name="permission",
        title=gettext_lazy("Permission"),
        plural=gettext_lazy("Permissions"),
        permission="taxpayers.view_grantedpermission",
        end="valid_until",
        rows=lambda: GrantedPermission.objects.filter(revoked_at=None),
        related=("taxpayer", "intermediary__taxpayer"),
    ),
    EndingKind(
        name="intermediary",
        title=gettext_lazy("Intermediary"),
        plural=gettext_lazy("Intermediaries"),
        permission="taxpayers.view_intermediary",
        end="active_until",
        rows=lambda: Intermediary.objects.filter(is_active=True),
        related=("taxpayer",),
    ),
    EndingKind(
        name="api_secret",
        title=gettext_lazy("Secret of a protected API"),
        plural=gettext_lazy("Secrets of protected APIs"),
        permission="tokens.view_protectedapi",
        end="expires_at",
        # No index: an authority has few APIs.
        rows=lambda: ProtectedApiSecret.objects.filter(
            revoked_at=None, protected_api__is_active=True
        ),
        related=("protected_api",),
        part_of="protected_api",
    ),
)
KIND_NAMES = {kind.name: kind for kind in KINDS}
