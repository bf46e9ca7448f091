"""All that the demo needs before it serves: migrations, sample data, a staff user (contract 6)."""

import fcntl
import json
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import transaction

from identity.demo.sample_day import make_sample_day
from identity.sandbox.registry import make_sandbox
from taxpayers import services
from taxpayers.credentials import Credentials, hash_secret
from taxpayers.duties import SCOPE_OF_DUTY, Duty
from taxpayers.evidence import on_paper
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, Taxpayer

# Of the taxpayer's own ERP, of the intermediary's, which may act for the taxpayer, and of the
# authority's portal: it has one client that registers and grants, and one that issues.
OWNERS = ("taxpayer", "intermediary", "portal", "issuing")
Sample = Mapping[str, Credentials]  # of each of them


@dataclass(frozen=True, slots=True)
class SavedCredentials:
    """The credentials of the sample, and the staff user's password; None: it was changed."""

    sample: Sample
    staff_password: str | None = field(repr=False)


def read_saved_credentials(path: Path) -> SavedCredentials:
    """The content of the file; nothing if it is missing or incomplete."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        sample = {name: Credentials(**data[name]) for name in OWNERS}
        return SavedCredentials(sample, data["password"])
    except (OSError, ValueError, TypeError, KeyError):
        return SavedCredentials({}, None)


def write_saved_credentials(path: Path, saved: SavedCredentials) -> None:
    """Replaces the file in one step: no reader finds half of it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        sample = {name: asdict(one) for name, one in saved.sample.items()}
        json.dump(sample | {"password": saved.staff_password}, file, indent=2)
    fresh.replace(path)


STAFF_USER = "admin"


def prepare(at: datetime) -> SavedCredentials:
    """Create what is missing; what an earlier run created, or staff changed, stays as it is."""
    settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
    with (settings.VAR_DIR / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time
        call_command("migrate", verbosity=0, interactive=False)
        return _create_missing(at)


@transaction.atomic
def _create_missing(at: datetime) -> SavedCredentials:
    path = settings.VAR_DIR / "demo.json"
    saved = read_saved_credentials(path)
    current = SavedCredentials(
        make_sample_registry(saved.sample, at), _staff_password(saved.staff_password)
    )
    write_saved_credentials(path, current)
    make_sandbox(at)
    make_sample_day(at)  # so that the staff pages have something to show
    return current


def _staff_password(saved: str | None) -> str | None:
    """The password of the staff user, who is created if missing; None if it was changed."""
    users: Any = apps.get_model("staff", "StaffAccount")._default_manager  # it writes the history
    staff = users.filter(username=STAFF_USER).first()
    if staff is None:
        password = secrets.token_urlsafe(12)
        users.create_superuser(STAFF_USER, password=password)
        return password
    return saved if saved and staff.check_password(saved) else None


TAXPAYER, INTERMEDIARY = TaxpayerId("C1234567890"), TaxpayerId("C9876543210")
AUTHORITY = TaxpayerId("C1000000000")
# As docs/management-api.md has them.
PORTAL = tuple(SCOPE_OF_DUTY[duty] for duty in (Duty.REGISTER, Duty.GRANT, Duty.WEBHOOKS))
ISSUING = (SCOPE_OF_DUTY[Duty.ISSUE],)
PERMISSIONS = ("documents:submit", "documents:view")
_BY = services.Author("demo (manage.py)", kind=services.AuthorKind.OPERATOR)


def make_sample_registry(saved: Sample, at: datetime) -> Sample:
    """Create what is missing. Saved credentials are returned as long as they are valid."""
    taxpayer = _taxpayer(TAXPAYER, "Demo Taxpayer", at)
    agent = _taxpayer(INTERMEDIARY, "Demo Intermediary", at)
    intermediary = Intermediary.objects.filter(
        taxpayer=agent
    ).first() or services.register_intermediary(taxpayer=agent, by=_BY, at=at)
    if not GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=intermediary).exists():
        services.grant_permission(
            taxpayer=taxpayer,
            intermediary=intermediary,
            codes=PERMISSIONS,
            evidence=on_paper("demo"),
            by=_BY,
            at=at,
        )
    authority = _taxpayer(AUTHORITY, "Demo Tax Authority", at)
    made = {
        "taxpayer": (taxpayer, "Demo ERP", ()),
        "intermediary": (agent, "Demo intermediary ERP", ()),
        "portal": (authority, "Demo portal", PORTAL),
        "issuing": (authority, "Demo issuing", ISSUING),
    }
    return {owner: _credentials(*made[owner], saved=saved.get(owner), at=at) for owner in OWNERS}


def _taxpayer(identifier: TaxpayerId, name: str, at: datetime) -> Taxpayer:
    existing = Taxpayer.objects.filter(tin=identifier.tin, rob=identifier.rob).first()
    return existing or services.register_taxpayer(taxpayer=identifier, name=name, by=_BY, at=at)


def _credentials(
    taxpayer: Taxpayer,
    name: str,
    scopes: Collection[str],
    *,
    saved: Credentials | None,
    at: datetime,
) -> Credentials:
    if saved is not None and _are_valid(taxpayer, saved, at):
        return saved
    scopes = [scope for scope in scopes if scope in settings.SCOPES]
    existing = taxpayer.system_users.filter(name=name).first()
    if existing is None:
        return services.register_system_user(
            reason="a new ERP system",
            taxpayer=taxpayer,
            name=name,
            scopes=scopes or None,
            by=_BY,
            at=at,
        ).credentials
    # Its secrets are lost, and a system user has room for two: revoke them all.
    for secret in existing.credentials.filter(slot__isnull=False):
        services.revoke_credential(
            credential=secret, reason="the demo's credentials were lost", by=_BY, at=at
        )
    return services.issue_secret(
        reason="a new ERP system", system_user=existing, by=_BY, at=at
    ).credentials


def _are_valid(taxpayer: Taxpayer, saved: Credentials, at: datetime) -> bool:
    stored = Credential.objects.filter(
        system_user__client_id=saved.client_id,
        system_user__taxpayer=taxpayer,
        lookup=hash_secret(saved.client_secret),
    ).first()
    return stored is not None and stored.is_live(at)
