"""Rows for tests, as `make` gives them.

They write straight to the database, also states that no service would make (an expired secret).
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, Sequence, SubFactory
from factory.django import DjangoModelFactory
from factory.helpers import post_generation
from uuid_utils.compat import uuid7

from identity.demo.sample_logins import set_last_used
from taxpayers.credentials import (
    Environment,
    Prefix,
    hash_secret,
    hint_of,
    new_client_id,
    new_client_secret,
)
from taxpayers.models import (
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    PermissionRequest,
    SystemUser,
    Taxpayer,
)
from taxpayers.services.credential_changes import store_last_end
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent, ProtectedApi, ProtectedApiSecret

ENVIRONMENT: Environment = "test"
SUBMIT, VIEW = "documents:submit", "documents:view"


class TaxpayerFactory(DjangoModelFactory[Taxpayer]):
    class Meta:
        model = Taxpayer

    tin = Sequence(lambda n: f"C{1000 + n:010}")  # tests name those before
    name = Sequence(lambda n: f"Taxpayer {n}")


class IntermediaryFactory(DjangoModelFactory[Intermediary]):
    class Meta:
        model = Intermediary

    taxpayer = SubFactory(TaxpayerFactory)


class GrantedPermissionFactory(DjangoModelFactory[GrantedPermission]):
    """In force since yesterday, without an end; `codes=[…]` are created where they are missing."""

    class Meta:
        model = GrantedPermission
        skip_postgeneration_save = True

    taxpayer = SubFactory(TaxpayerFactory)
    intermediary = SubFactory(IntermediaryFactory)
    valid_from = LazyFunction(lambda: timezone.now() - timedelta(days=1))

    @post_generation
    def codes(self, create: bool, extracted: list[str] | None, **_: Any) -> None:
        for code in [SUBMIT, VIEW] if extracted is None else extracted:
            self.codes.add(PermissionCode.objects.get_or_create(code=code)[0])


class PermissionRequestFactory(DjangoModelFactory[PermissionRequest]):
    """Open, to a taxpayer that need not exist."""

    class Meta:
        model = PermissionRequest

    tin = Sequence(lambda n: f"C{n:010}")
    intermediary = SubFactory(IntermediaryFactory)
    client_id = "ci_test_x"
    codes = f"{SUBMIT} {VIEW}"
    expires_at = LazyFunction(lambda: timezone.now() + timedelta(days=21))


class SystemUserFactory(DjangoModelFactory[SystemUser]):
    class Meta:
        model = SystemUser

    client_id = LazyFunction(lambda: new_client_id(ENVIRONMENT))
    taxpayer = SubFactory(TaxpayerFactory)
    name = Sequence(lambda n: f"ERP {n}")
    blocked_by = LazyAttribute(lambda row: "officer" if getattr(row, "blocked_at", None) else "")
    blocked_reason = LazyAttribute(lambda row: "abuse" if row.blocked_by else "")


class CredentialFactory(DjangoModelFactory[Credential]):
    """Made yesterday, valid for a year. The secret is `.clear`; `last_used_at` is of its client."""

    class Meta:
        model = Credential

    system_user = SubFactory(SystemUserFactory)
    slot = 1
    clear = LazyFunction(lambda: new_client_secret(ENVIRONMENT))
    lookup = LazyAttribute(lambda row: hash_secret(row.clear))
    hint = LazyAttribute(lambda row: hint_of(row.clear))
    created_at = LazyFunction(lambda: timezone.now() - timedelta(days=1))
    expires_at = LazyAttribute(lambda row: row.created_at + timedelta(days=365))

    @classmethod
    def _create(cls, model_class: type[Credential], *args: Any, **kwargs: Any) -> Credential:
        clear = kwargs.pop("clear")  # no column: the database never sees it
        used_at = kwargs.pop("last_used_at", None)
        secret: Credential = super()._create(model_class, *args, **kwargs)
        store_last_end(secret.system_user)
        if used_at is not None:
            set_last_used(secret, used_at)
        secret.clear = clear  # type: ignore[attr-defined]
        return secret


class ProtectedApiFactory(DjangoModelFactory[ProtectedApi]):
    class Meta:
        model = ProtectedApi

    client_id = LazyFunction(lambda: new_client_id(ENVIRONMENT, Prefix.API_ID))
    name = Sequence(lambda n: f"API {n}")
    audience = "InvoicingAPI"
    created_at = LazyFunction(lambda: timezone.now() - timedelta(days=1))


class ProtectedApiSecretFactory(DjangoModelFactory[ProtectedApiSecret]):
    """Of a secret in no test's hands, made yesterday and valid for a year."""

    class Meta:
        model = ProtectedApiSecret

    protected_api = SubFactory(ProtectedApiFactory)
    lookup = LazyFunction(lambda: hash_secret(new_client_secret(ENVIRONMENT, Prefix.API_SECRET)))
    hint = LazyAttribute(lambda row: hint_of(row.lookup))
    created_at = LazyFunction(lambda: timezone.now() - timedelta(days=1))
    expires_at = LazyAttribute(lambda row: row.created_at + timedelta(days=365))


def stored_login(
    at: datetime | None = None, reason: str = "", user: SystemUser | None = None, **facts: Any
) -> LoginEvent:
    """A login of that moment, or of now, as its table has it: the id begins with the moment."""
    at = at or timezone.now()
    if user is not None:
        facts = {"system_user": user, "client_id": user.client_id} | facts
    key = UUID(int=first_id(at).int | uuid7().int & ((1 << 80) - 1))
    return LoginEvent.objects.create(pk=key, at=at, reason=reason, **facts)
