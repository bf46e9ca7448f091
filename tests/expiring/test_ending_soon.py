"""Ending soon: one list of what ends, of every kind, and one task for what was selected."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.demo.sample_logins import set_last_used
from identity.sandbox.registry import make_sandbox
from identity.staff.expiring import listing, page
from identity.staff.expiring.kinds import KIND_NAMES
from identity.staff.expiring.listing import days_left
from taxpayers.models import Change, SystemUser
from taxpayers.moments import end_of_day
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    ProtectedApiSecretFactory,
    SystemUserFactory,
    stored_login,
)
from tests.support.staff import errors_of, list_url, staff_client, task_url, text_of
from tokens.models import LoginEvent, ProtectedApiSecret

pytestmark = pytest.mark.django_db

URL = "/admin/ending-soon/"
DAY = timedelta(days=1)
ENDS = {"permission": "valid_until", "intermediary": "active_until", "system_user": "expires_at"}


def in_days(days: int) -> Any:
    return end_of_day((timezone.localtime() + days * DAY).date())


@pytest.fixture
def records(db: None) -> dict[str, Any]:
    """One of each kind, in the order of their ends."""
    begin = timezone.now() - 99 * DAY
    return {
        "intermediary": IntermediaryFactory.create(active_until=in_days(1)),
        "secret": CredentialFactory.create(created_at=begin, expires_at=in_days(2)),
        "permission": GrantedPermissionFactory.create(valid_from=begin, valid_until=in_days(3)),
        "system_user": SystemUserFactory.create(expires_at=in_days(20)),
    }


@pytest.fixture
def api_secret(db: None) -> ProtectedApiSecret:
    """Of a protected API; it ends in two days."""
    secret: ProtectedApiSecret = ProtectedApiSecretFactory.create(expires_at=in_days(2))
    return secret


def values_of(response: Any) -> list[str]:
    return [row.value for row, _task in response.context["rows"]]


def value(records: dict[str, Any], kind: str) -> str:
    return f"{kind}:{records[kind].pk}"


def test_every_kind_is_in_one_list_sorted_by_its_end(
    records: dict[str, Any], viewer: Client
) -> None:
    everything = [value(records, kind) for kind in records]
    assert values_of(viewer.get(URL)) == everything
    assert values_of(viewer.get(URL, {"within": "7"})) == everything[:3]
    for kind in records:
        assert values_of(viewer.get(URL, {"kind": kind})) == [value(records, kind)]
    text = text_of(viewer.get(URL))
    for shown in ("tomorrow", "in 2 days", "in 20 days", "Call the owner", "Never"):
        assert shown in text
    assert str(records["secret"]) in text
    assert str(records["permission"].taxpayer) in text
    printed = text_of(viewer.get(URL, {"kind": "secret", "print": "1"}))
    assert "Called" in printed
    assert str(records["secret"].system_user.taxpayer) in printed
    assert str(records["permission"].taxpayer) not in printed


def test_what_has_ended_comes_latest_first_and_what_no_longer_counts_not(viewer: Client) -> None:
    begin, soon = timezone.now() - 9 * DAY, in_days(1)
    CredentialFactory.create(slot=None, created_at=begin, expires_at=soon)
    GrantedPermissionFactory.create(valid_from=begin, valid_until=soon, revoked_at=begin)
    IntermediaryFactory.create(active_until=soon, is_active=False)
    older, newer, _oldest = (
        SystemUserFactory.create(expires_at=in_days(days)) for days in (-9, -1, -40)
    )
    page = viewer.get(URL, {"within": "ended"})
    assert "ended yesterday" in text_of(page)
    assert values_of(page) == [f"system_user:{user.pk}" for user in (newer, older)]
    assert "Nothing ends in this time." in text_of(viewer.get(URL))


def test_clients_of_the_sandbox_are_not_listed_counted_or_printed(officer: Client) -> None:
    make_sandbox(timezone.now())
    ends_tomorrow = CREDENTIALS[SandboxName.SECRET_ENDS_TOMORROW].client_id
    works = CREDENTIALS[SandboxName.WORKS].client_id
    SystemUser.objects.filter(client_id=works).update(expires_at=in_days(3))
    client = officer
    page = client.get(list_url(SystemUser), {"q": ends_tomorrow})
    assert "Ends soon Sandbox" in text_of(page)
    for query in ({}, {"kind": "secret"}, {"kind": "system_user"}, {"within": "ended"}):
        assert values_of(client.get(URL, query)) == []
    secret = CredentialFactory.create(expires_at=in_days(2))
    assert values_of(client.get(URL)) == [f"secret:{secret.pk}"]
    printed = text_of(client.get(URL, {"print": "1"}))
    assert str(secret.system_user.taxpayer) in printed
    assert "Sandbox" not in printed
    rows = client.get(reverse("admin:index")).context["expiry_rows"]
    counts = {str(title): [count.count for count, _url in found] for title, found in rows}
    assert counts["Secrets, keys and certificates"] == [1, 1, 1]
    assert "System users" not in counts  # a row without a number is hidden


@pytest.mark.postgresql
@pytest.mark.parametrize("name", ["secret", "system_user"])
def test_clients_of_the_sandbox_are_looked_up_once_and_not_for_each_row(name: str) -> None:
    kind = KIND_NAMES[name]
    plan = kind.rows().filter(**{f"{kind.end}__gte": timezone.now()}).explain()
    assert "hashed SubPlan" in plan, plan


def test_the_last_use_of_each_is_shown(records: dict[str, Any], viewer: Client) -> None:
    at = timezone.now()
    permission = records["permission"]
    subject = str(permission.taxpayer.identifier)
    stored_login(at, subject=subject, actor=str(permission.intermediary.taxpayer.identifier))
    used = CredentialFactory.create(created_at=at - 9 * DAY, expires_at=in_days(4), last_used_at=at)
    today = timezone.localtime(at)
    shown = {row.value: row.last_use for row, _task in viewer.get(URL).context["rows"]}
    for recent in (value(records, "permission"), f"secret:{used.pk}"):
        assert shown[recent].startswith(f"{today.day} {today:%b %Y}")
    assert shown[value(records, "secret")] == "Never"
    # Logins of a taxpayer for itself are no use of the permission.
    LoginEvent.objects.all().delete()
    stored_login(at, subject=subject)
    listed = viewer.get(URL, {"kind": "permission"}).context["rows"]
    assert [row.last_use for row, _task in listed] == ["Not in 30 days"]


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (-30, "ended 30 days ago"),
        (-1, "ended yesterday"),
        (0, "today"),
        (1, "tomorrow"),
        (2, "in 2 days"),
    ],
)
def test_days_left_are_days_of_the_calendar_in_words(days: int, words: str) -> None:
    assert days_left(in_days(days), timezone.now()) == words
    assert days_left(in_days(0) - timedelta(seconds=1), in_days(0)) == "ended today"


# --- Extend what was selected --------------------------------------------------------------------


def select(client: Client, values: list[str], **form: str) -> Any:
    """Select rows and press the button; with `confirmed` also what a click on the next one does."""
    if "confirmed" in form:
        form = {"previewed": select(client, values).context["fingerprint"]} | form
    return client.post(URL, {"selected": values} | form, follow=True)


def test_several_kinds_are_extended_in_one_task(
    records: dict[str, Any], registrar: Client, auditor: Client
) -> None:
    client = registrar
    chosen = [value(records, kind) for kind in ENDS]
    assert "Select at least one row." in text_of(select(client, []))
    for wrong in ("x", "secret", "secret:", "secret:x", "change:1", "secret:" + "9" * 30):
        assert client.post(URL, {"selected": [wrong]}).status_code == 400
    assert 'name="selected"' not in auditor.get(URL).content.decode()
    select(auditor, chosen, confirmed="1", length="year", reason="x")
    unexplained = select(client, chosen, confirmed="1", length="year", reason="")
    assert "required" in errors_of(unexplained)
    assert not Change.objects.exists()
    shown = text_of(select(client, chosen))
    assert "3 selected: 2 change, 1 stays as it is" in shown
    assert "Your role may not change this." in shown
    done = select(client, chosen, confirmed="1", length="year", reason="renewed")
    assert "2 done. 1 was not changed." in text_of(done)
    for kind, end in ENDS.items():
        old = getattr(records[kind], end)
        records[kind].refresh_from_db()
        is_extended = getattr(records[kind], end) > old + 360 * DAY
        assert is_extended is (kind != "system_user"), kind
    changes = Change.objects.filter(reason="renewed")
    assert set(changes.values_list("action", flat=True)) == {
        "extend_permission",
        "change_intermediary",
    }
    assert changes.values("task_id").distinct().count() == 1


@pytest.mark.parametrize("kind", ["secret", "api_secret"])
def test_a_secret_is_replaced_from_the_list_and_not_extended(
    kind: str, records: dict[str, Any], api_secret: ProtectedApiSecret, officer: Client
) -> None:
    secret = {"secret": records["secret"], "api_secret": api_secret}[kind]
    owner = api_secret.protected_api if kind == "api_secret" else secret.system_user
    ((row, task),) = officer.get(URL, {"kind": kind}).context["rows"]
    rotate = task_url(owner, "rotate_secret")
    assert (task.may_select, task.link.url) == (False, rotate)
    assert officer.get(rotate).status_code == 200
    shown = select(officer, [row.value])
    assert f"The secret {secret} ends" in text_of(shown)
    assert rotate in shown.content.decode()
    assert 'name="confirmed"' not in shown.content.decode()
    assert row.value in values_of(officer.get(URL))


def test_to_do_is_what_the_new_secret_and_the_block_allow(
    records: dict[str, Any], officer: Client
) -> None:
    user = records["secret"].system_user
    new = CredentialFactory.create(system_user=user, slot=2, expires_at=in_days(300))

    def page() -> str:
        response = officer.get(URL, {"kind": "secret"})
        ((_row, task),) = response.context["rows"]
        assert (task.may_select, task.link) == (False, None)
        return text_of(response)

    assert "another secret is valid until" in page()
    assert "The new one is not used yet: call the owner" in page()
    set_last_used(new, timezone.now())
    assert "Nothing: the new one is in use" in page()
    new.delete()
    blocked = {"blocked_at": timezone.now(), "blocked_by": "x", "blocked_reason": "x"}
    SystemUser.objects.filter(pk=user.pk).update(**blocked)
    assert "Nothing: it is blocked" in page()


def test_of_protected_apis_the_secrets_without_a_successor_are_listed(
    api_secret: ProtectedApiSecret, officer: Client
) -> None:
    client, soon, api = officer, in_days(2), api_secret.protected_api
    ProtectedApiSecretFactory.create(expires_at=soon, revoked_at=timezone.now())
    ProtectedApiSecretFactory.create(expires_at=soon, protected_api__is_active=False)
    page = client.get(URL, {"kind": "api_secret"})
    ((row, _task),) = page.context["rows"]
    assert f"Secret of a protected API {api} {api_secret}" in text_of(page)
    assert (row.owner, row.last_use, row.successor) == (api, "No use recorded", None)
    assert str(api) in text_of(client.get(URL, {"kind": "api_secret", "print": "1"}))
    overview = client.get(reverse("admin:index")).content.decode()
    assert f"{URL}?kind=api_secret&amp;within=7" in overview
    other = ProtectedApiSecretFactory.create(expires_at=in_days(20))  # of another API
    assert "another secret" not in text_of(client.get(URL))
    other.protected_api = api
    other.save()
    at = timezone.localtime()
    ProtectedApiSecret.objects.filter(pk=api_secret.pk).update(last_used_at=at)
    assert "another secret is valid until" in text_of(client.get(URL))
    ProtectedApiSecret.objects.filter(pk=other.pk).update(revoked_at=at)
    assert "another secret" not in text_of(client.get(URL))
    ((row, _task),) = client.get(URL, {"kind": "api_secret"}).context["rows"]
    assert row.last_use.startswith(f"{at.day} {at:%b %Y}")


@pytest.mark.parametrize("role", ["viewer", "registrar"])
def test_who_may_not_see_protected_apis_does_not_see_their_secrets(
    role: str, api_secret: ProtectedApiSecret
) -> None:
    client = staff_client(role)
    assert values_of(client.get(URL)) == values_of(client.get(URL, {"kind": "api_secret"})) == []
    assert "protected API" not in text_of(client.get(URL))
    assert "protected API" not in text_of(client.get(reverse("admin:index")))
    assert client.post(URL, {"selected": [f"api_secret:{api_secret.pk}"]}).status_code == 403


# --- Who, how much, and on paper -----------------------------------------------------------------


def test_pages_and_rows_are_bounded(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PER_PAGE", 2)
    users = [SystemUserFactory.create(expires_at=in_days(days)) for days in (1, 2, 3, 4, 5)]
    client = viewer
    pages = [values_of(client.get(URL, {"p": number})) for number in (1, 2, 3)]
    assert [row for rows in pages for row in rows] == [f"system_user:{u.pk}" for u in users]
    monkeypatch.setattr(listing, "MAX_ROWS", 3)
    shown = client.get(URL)
    assert (shown.context["count"], shown.context["has_more"]) == (3, True)
