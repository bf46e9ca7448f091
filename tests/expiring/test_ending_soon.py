"""Ending soon: one list of what ends, of every kind, each with the task that renews it."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.demo.sample_logins import set_last_used
from identity.sandbox.registry import make_sandbox
from identity.staff.expiring import page
from identity.staff.expiring.kinds import KIND_NAMES
from identity.staff.expiring.page import days_left
from taxpayers.models import SystemUser
from taxpayers.moments import end_of_day
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.support import make
from tests.support.staff import list_url, staff_client, task_url, text_of
from tokens.models import ProtectedApiSecret

pytestmark = pytest.mark.django_db

URL = "/admin/ending-soon/"
DAY = timedelta(days=1)


def in_days(days: int) -> Any:
    return end_of_day((timezone.localtime() + days * DAY).date())


@pytest.fixture
def records(db: None) -> dict[str, Any]:
    """One of each kind, in the order of their ends."""
    begin = timezone.now() - 99 * DAY
    return {
        "intermediary": make.intermediary(active_until=in_days(1)),
        "secret": make.credential(created_at=begin, expires_at=in_days(2)),
        "permission": make.permission(valid_from=begin, valid_until=in_days(3)),
        "system_user": make.system_user(expires_at=in_days(20)),
    }


@pytest.fixture
def api_secret(db: None) -> ProtectedApiSecret:
    secret: ProtectedApiSecret = make.api_secret(expires_at=in_days(2))
    return secret


def values_of(response: Any) -> list[str]:
    rows = (row for row, _button in response.context["rows"])
    return [f"{row.kind.name}:{row.record.pk}" for row in rows]


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


def test_what_has_ended_comes_latest_first(viewer: Client) -> None:
    older, newer, _oldest = (make.system_user(expires_at=in_days(days)) for days in (-9, -1, -40))
    page = viewer.get(URL, {"within": "expired"})
    assert "ended yesterday" in text_of(page)
    assert values_of(page) == [f"system_user:{user.pk}" for user in (newer, older)]
    assert "Nothing ends in this time." in text_of(viewer.get(URL))


def test_clients_of_the_sandbox_are_not_listed_or_counted(officer: Client) -> None:
    make_sandbox(timezone.now())
    ends_tomorrow = CREDENTIALS[SandboxName.SECRET_ENDS_TOMORROW].client_id
    works = CREDENTIALS[SandboxName.WORKS].client_id
    SystemUser.objects.filter(client_id=works).update(expires_at=in_days(3))
    page = officer.get(list_url(SystemUser), {"q": ends_tomorrow})
    assert "Ends soon Sandbox" in text_of(page)
    for query in ({}, {"kind": "secret"}, {"kind": "system_user"}, {"within": "expired"}):
        assert values_of(officer.get(URL, query)) == []
    secret = make.credential(expires_at=in_days(2))
    assert values_of(officer.get(URL)) == [f"secret:{secret.pk}"]
    rows = officer.get(reverse("admin:index")).context["expiry_rows"]
    counts = {str(title): [count for _days, count, _url in found] for title, found in rows}
    assert counts["Secrets, keys and certificates"] == ["1", "1", "1"]
    assert "System users" not in counts  # a row without a number is hidden


@pytest.mark.postgresql
@pytest.mark.parametrize("name", ["secret", "system_user"])
def test_clients_of_the_sandbox_are_looked_up_once_and_not_for_each_row(name: str) -> None:
    kind = KIND_NAMES[name]
    plan = kind.rows().filter(**{f"{kind.end}__gte": timezone.now()}).explain()
    assert "hashed SubPlan" in plan, plan


def test_the_last_use_of_a_credential_is_shown(records: dict[str, Any], viewer: Client) -> None:
    at = timezone.now()
    used = make.credential(created_at=at - 9 * DAY, expires_at=in_days(4), last_used_at=at)
    today = timezone.localtime(at)
    page = viewer.get(URL)
    rows = (row for row, _button in page.context["rows"])
    shown = dict(zip(values_of(page), (row.last_use for row in rows), strict=True))
    assert shown[f"secret:{used.pk}"].startswith(f"{today.day} {today:%b %Y}")
    assert shown[value(records, "secret")] == "Never"
    assert shown[value(records, "permission")] == "—"


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


def test_each_row_leads_to_the_task_that_renews_it(
    records: dict[str, Any], officer: Client, registrar: Client, auditor: Client
) -> None:
    tasks = {
        "intermediary": (registrar, records["intermediary"], "extend_intermediary"),
        "secret": (officer, records["secret"].system_user, "rotate_secret"),
        "permission": (registrar, records["permission"], "extend_permission"),
        "system_user": (officer, records["system_user"], "extend_system_user"),
    }
    for kind, (client, page_of, name) in tasks.items():
        ((_row, button),) = client.get(URL, {"kind": kind}).context["rows"]
        assert button.url == task_url(page_of, name)
        assert client.get(button.url).status_code == 200
    for client in (auditor, officer):
        ((_row, button),) = client.get(URL, {"kind": "permission"}).context["rows"]
        assert button is None
    assert "another secret" not in text_of(officer.get(URL))


def test_several_are_extended_in_their_list(records: dict[str, Any], registrar: Client) -> None:
    for within in ("7", "expired"):
        lists = dict(registrar.get(URL, {"within": within}).context["lists"])
        assert {str(title) for title in lists} == {"Permissions", "Intermediaries"}
        for title, url in lists.items():
            page = registrar.get(url)
            kind = {"Permissions": "permission", "Intermediaries": "intermediary"}[str(title)]
            found = [records[kind]] if within == "7" else []
            assert list(page.context["cl"].result_list) == found
            assert not found or "Extend the selected" in text_of(page)


def test_to_do_is_what_the_new_secret_and_the_block_allow(
    records: dict[str, Any], officer: Client
) -> None:
    user = records["secret"].system_user
    new = make.credential(system_user=user, slot=2, expires_at=in_days(300))

    def page() -> str:
        response = officer.get(URL, {"kind": "secret"})
        ((_row, button),) = response.context["rows"]
        assert button is None
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
    api = api_secret.protected_api
    page = officer.get(URL, {"kind": "api_secret"})
    ((row, button),) = page.context["rows"]
    assert f"Secret of a protected API {api} {api_secret}" in text_of(page)
    assert (row.owner, row.last_use, row.successor) == (api, "No use recorded", None)
    assert button.url == task_url(api, "rotate_secret")
    assert officer.get(button.url).status_code == 200
    assert f"api_secret:{api_secret.pk}" in values_of(officer.get(URL))
    overview = officer.get(reverse("admin:index")).content.decode()
    assert f"{URL}?kind=api_secret&amp;within=7" in overview
    other = make.api_secret(expires_at=in_days(20))  # of another API
    assert "another secret" not in text_of(officer.get(URL))
    other.protected_api = api
    other.save()
    at = timezone.localtime()
    ProtectedApiSecret.objects.filter(pk=api_secret.pk).update(last_used_at=at)
    assert "another secret is valid until" in text_of(officer.get(URL))
    ProtectedApiSecret.objects.filter(pk=other.pk).update(revoked_at=at)
    assert "another secret" not in text_of(officer.get(URL))
    ((row, _button),) = officer.get(URL, {"kind": "api_secret"}).context["rows"]
    assert row.last_use.startswith(f"{at.day} {at:%b %Y}")


@pytest.mark.parametrize("role", ["viewer", "registrar"])
def test_who_may_not_see_protected_apis_does_not_see_their_secrets(
    role: str, api_secret: ProtectedApiSecret
) -> None:
    client = staff_client(role)
    assert values_of(client.get(URL)) == values_of(client.get(URL, {"kind": "api_secret"})) == []
    assert "protected API" not in text_of(client.get(URL))
    assert "protected API" not in text_of(client.get(reverse("admin:index")))


def test_pages_and_rows_are_bounded(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PER_PAGE", 2)
    users = [make.system_user(expires_at=in_days(days)) for days in (1, 2, 3, 4, 5)]
    pages = [values_of(viewer.get(URL, {"p": number})) for number in (1, 2, 3)]
    assert [row for rows in pages for row in rows] == [f"system_user:{u.pk}" for u in users]
    monkeypatch.setattr(page, "MAX_ROWS", 3)
    shown = viewer.get(URL)
    assert (shown.context["count"], shown.context["has_more"]) == (3, True)
