"""The export of staff accounts, for a review of who has access."""

import csv
from typing import Any

import pytest
from django.contrib.auth.models import User

from identity.staff.models import StaffAccount
from taxpayers.models import Change
from tests.support.accounts import new_staff, with_totp
from tests.support.staff import list_url, staff_client, text_of

pytestmark = pytest.mark.django_db
EXPORT = f"{list_url(StaffAccount)}export.csv"


def rows(response: Any) -> list[dict[str, str]]:
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(text.splitlines()))


def test_an_auditor_exports_every_account_with_its_role_and_second_step() -> None:
    auditor = staff_client("auditor", "farid")
    with_totp(new_staff("registrar", "badrul", password=None))
    new_staff("viewer", "chong", password=None)
    User.objects.filter(username="chong").update(is_active=False)
    assert "Export CSV" in text_of(auditor.get(list_url(StaffAccount)))
    exported = {row["user_name"]: row for row in rows(auditor.get(EXPORT))}
    assert set(exported) == {"farid", "badrul", "chong"}
    assert exported["badrul"]["role"] == "registrar"
    assert exported["badrul"]["second_step"] == "totp"
    assert [exported[name]["active"] for name in ("badrul", "chong")] == ["yes", "no"]
    found = rows(auditor.get(f"{EXPORT}?role=registrar"))
    assert [row["user_name"] for row in found] == ["badrul"]
    assert [(c.by, c.object_type) for c in Change.objects.all()] == [("farid", "staffaccount")] * 2


@pytest.mark.parametrize("role", ["registrar", "security officer", "account manager"])
def test_who_may_not_export_or_not_see_accounts_exports_none(role: str) -> None:
    """Registrars export the registry, but do not see accounts; managers the other way round."""
    assert staff_client(role).get(EXPORT).status_code == 403
    assert not Change.objects.exists()
