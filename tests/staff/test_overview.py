"""The first page: correct numbers, each with its list; and how many queries each page takes."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from identity.demo.sample_day import make_sample_day
from identity.staff.expiring.kinds import KIND_NAMES
from identity.staff.framework.export import ExportingAdmin
from identity.staff.models import StaffSignIn
from identity.staff.overview import logins, page as counting
from identity.staff.overview.page import expiring
from taxpayers.models import Change, SystemUser
from taxpayers.moments import start_of_day
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.staff.test_admin_safety import ADMINS
from tests.support import make
from tests.support.accounts import new_staff, with_totp
from tests.support.factories import stored_login
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of
from tokens.login_events.counting import SETTLED_AFTER, count_settled
from tokens.models import LoginCount, LoginEvent

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 20, 4, 30, tzinfo=UTC)  # half past noon in Kuala Lumpur
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def now() -> logins.Traffic:
    return logins.traffic(NOW, count_settled(NOW))


def test_every_login_is_counted_once_however_often_the_page_is_opened() -> None:
    for minutes in (0, 1, 7, 59, 61, 600):
        stored_login(NOW - minutes * MINUTE)
    stored_login(NOW - 7 * MINUTE, "no_permission")
    for _ in range(3):
        found = now()
        assert (found.issued, found.refused) == (6, 1)
    assert sum(row.logins for row in LoginCount.objects.all()) == 5  # the others are too young
    stored_login(NOW - SETTLED_AFTER + timedelta(seconds=1))  # it may be under way
    count_settled(NOW)
    assert sum(row.logins for row in LoginCount.objects.all()) == 5
    assert now().issued == 7
    count_settled(NOW + 10 * MINUTE)  # what is added later is added to its hour
    counted = LoginCount.objects.filter(hour=NOW.replace(minute=0), reason="")
    assert [row.logins for row in counted] == [4]


def test_one_request_counts_a_limited_number_and_reports_the_rest() -> None:
    for minutes in range(10, 20):
        stored_login(NOW - minutes * MINUTE)
    assert count_settled(NOW, most=4).is_behind
    assert logins.traffic(NOW, count_settled(NOW, most=4)).lacks_latest
    assert not count_settled(NOW, most=4).is_behind
    assert now().issued == 10


def test_the_command_counts_all_of_it_and_counts_nothing_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored_login(timezone.now() - 2 * HOUR)
    for _ in range(2):
        call_command("count_logins", "--json")
    assert [row.logins for row in LoginCount.objects.all()] == [1]
    assert '"steps": 1' in capsys.readouterr().out


def test_what_is_pruned_was_counted_before() -> None:
    stored_login(timezone.now() - 3 * HOUR)
    call_command("prune_logins", "--older-than", "400d")
    assert LoginCount.objects.get().logins == 1


def test_bars_are_the_latest_hours() -> None:
    stored_login(datetime(2026, 5, 19, 15, 59, tzinfo=UTC))
    stored_login(datetime(2026, 5, 19, 16, 1, tzinfo=UTC), "no_permission")
    stored_login(NOW - 25 * HOUR)  # too old
    found = now()
    assert len(found.bars) == 24
    bars = {bar.begins: (bar.issued, bar.refused) for bar in found.bars}
    assert {hour: counts for hour, counts in bars.items() if any(counts)} == {
        datetime(2026, 5, 19, 15, tzinfo=UTC): (1, 0),
        datetime(2026, 5, 19, 16, tzinfo=UTC): (0, 1),
    }


def test_the_most_frequent_reasons_come_first() -> None:
    for reason, ages in {
        "no_permission": [HOUR],
        "secret_expired": [HOUR, 2 * HOUR],
        "invalid_scope": [3 * DAY, 4 * DAY, 5 * DAY],  # too old
    }.items():
        for age in ages:
            stored_login(NOW - age, reason)
    assert now().top_reasons == [("secret_expired", 2), ("no_permission", 1)]


def failing(*story: tuple[timedelta, str]) -> list[tuple[int, str]]:
    user = make.system_user()
    for age, reason in story:
        stored_login(NOW - age, reason, user)
    return [(client.refusals, client.reason) for client in logins.failing_clients(NOW)]


def test_a_client_that_only_fails_since_its_last_token_started_to_fail() -> None:
    story = [(9 * HOUR, "no_permission"), (8 * HOUR, ""), (2 * HOUR, "secret_expired")]
    assert failing(*story, (HOUR, "secret_revoked")) == [(2, "secret_revoked")]


LONG_AGO, GIVEN_UP = logins.STARTED_WITHIN + HOUR, logins.LOOKBACK + HOUR
OTHER_STORIES = {
    "one slip": [(3 * HOUR, ""), (2 * HOUR, "no_permission")],
    "fixed": [(3 * HOUR, "no_permission"), (2 * HOUR, "no_permission"), (HOUR, "")],
    "never worked": [(3 * HOUR, "no_permission"), (2 * HOUR, "no_permission")],
    "for long": [(LONG_AGO, ""), (2 * HOUR, "no_permission"), (HOUR, "invalid_scope")],
    "gave up": [(9 * DAY, ""), (GIVEN_UP + DAY, "x"), (GIVEN_UP, "no_permission")],
}


@pytest.mark.parametrize("story", OTHER_STORIES)
def test_no_other_client_started_to_fail(story: str) -> None:
    assert failing(*OTHER_STORIES[story]) == []


def test_the_latest_failing_client_comes_first() -> None:
    for hours in range(1, 7):
        user = make.system_user(name=f"after {hours:02}")
        stored_login(NOW - (hours + 1) * HOUR, "", user)
        for minutes in (30, 31):
            stored_login(NOW - minutes * MINUTE, "secret_expired", user)
    found = logins.failing_clients(NOW)
    assert [one.system_user.name for one in found] == [f"after {hours:02}" for hours in range(1, 7)]
    assert [one.failing_since for one in found] == [NOW - hours * HOUR for hours in range(2, 8)]


@pytest.mark.parametrize(("today", "last"), [(30, 27), (27, 26)], ids=["Monday", "Friday"])
def test_who_was_never_here_sees_what_changed_since_the_last_working_day(
    today: int, last: int
) -> None:
    request = RequestFactory().get("/")
    request.user = new_staff("viewer", "zul")
    since = counting._last_here(request, datetime(2026, 11, today, 4, tzinfo=UTC))
    assert since == start_of_day(date(2026, 11, last))


def test_clients_of_the_sandbox_are_not_failing() -> None:
    client_id = CREDENTIALS[SandboxName.ONE_LOGIN_A_MINUTE].client_id
    user = make.system_user(client_id=client_id)
    for age, reason in ((300, ""), (299, "no_permission"), (298, "invalid_scope")):
        stored_login(NOW - timedelta(seconds=age), reason, user)
    assert logins.failing_clients(NOW) == []
    for rows in (SystemUser.objects, LoginEvent.objects):
        rows.filter(client_id=client_id).update(client_id="ci_test_other")
    assert [client.system_user for client in logins.failing_clients(NOW)] == [user]


def test_what_expires_is_counted_within_7_30_and_90_days(monkeypatch: pytest.MonkeyPatch) -> None:
    for days in (-1, 1, 8, 29, 31, 91):
        make.system_user(expires_at=NOW + days * DAY)
        make.credential(created_at=NOW - 2 * DAY, expires_at=NOW + days * DAY)
        make.permission(valid_from=NOW - 2 * DAY, valid_until=NOW + days * DAY)
        make.intermediary(active_until=NOW + days * DAY)
        make.api_secret(created_at=NOW - 2 * DAY, expires_at=NOW + days * DAY)
    ends = {"created_at": NOW - 2 * DAY, "expires_at": NOW + DAY}
    make.api_secret(revoked_at=NOW - HOUR, **ends)
    make.api_secret(protected_api__is_active=False, **ends)
    make.credential(slot=None, created_at=NOW - DAY, expires_at=NOW + DAY)
    make.permission(valid_from=NOW - DAY, valid_until=NOW + DAY, revoked_at=NOW - HOUR)
    make.intermediary(active_until=NOW + DAY, is_active=False)
    for name, kind in KIND_NAMES.items():
        assert expiring(kind, NOW) == {7: 1, 30: 3, 90: 4}, name
    monkeypatch.setattr(counting, "MAX_COUNTED", 2)
    assert expiring(KIND_NAMES["system_user"], NOW) == {7: 1, 30: 3, 90: 3}
    assert [counting._capped(n) for n in (1, 2, 3)] == ["1", "2", "2+"]


def test_what_colleagues_changed_since_the_sign_in_before_is_on_the_page(
    officer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = timezone.now()
    change = {"object_type": "taxpayer", "action": "rename_taxpayer"}
    for by, hours in (("nurul", 1), ("nurul", 99), ("kumar", 1)):
        Change.objects.create(by=by, at=at - hours * HOUR, label=f"{by} {hours}", **change)
    unwanted = {"object_type": "taxpayer", "label": "unwanted", "at": at - 2 * HOUR}
    for action in ("change_own_password", "export_logins"):
        Change.objects.create(by="nurul", action=action, **unwanted)
    Change.objects.create(by="ci_1 (client)", action="rename_taxpayer", **unwanted)
    signed_in = {"outcome": StaffSignIn.SIGNED_IN, "username": "kumar"}
    for hours in (90, 0):
        StaffSignIn.objects.create(at=at - hours * HOUR, **signed_in)
    for _ in range(2):
        Change.objects.create(by="nurul", at=at, label="imported", task_id=UUID(int=1), **change)
    shown = officer.get(reverse("admin:index"))
    page = text_of(shown)
    assert "Changed by colleagues since" in page
    task = reverse("admin:taxpayers_change_task", args=[Change.objects.latest("pk").pk])
    assert f'<a href="{task}">2 changes</a>' in shown.content.decode()
    assert "nurul 1 · nurul" in page
    assert "nurul 99" not in page
    assert "kumar 1" not in page
    assert "unwanted" not in page
    monkeypatch.setattr(counting, "MAX_COUNTED", 2)  # then all of it is later than that
    assert "nurul 1" not in text_of(officer.get(reverse("admin:index")))


@pytest.mark.slow
def test_every_figure_of_the_sample_day_is_a_link_to_a_list_of_so_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_sample_day(timezone.now())
    assert not make_sample_day(timezone.now())  # it is there already
    client = staff_client()
    response = client.get(reverse("admin:index"))
    content = response.content.decode().partition('<div class="staff">')[2]
    links = {unescape(link) for link in re.findall(r'<a [^>]*href="(/admin/[^"]+)"', content)}
    assert len([link for link in links if "loginevent" in link]) >= 6
    assert len([link for link in links if "=7" in link]) == 3  # of what ends within 90 days
    page = response.context
    logins_of = {url: figure for _title, figure, url in page["figures"]}
    logins_of |= {url: count for _reason, count, url in page["reasons"]}
    logins_of |= {url: failing.refusals for failing, _why, url in page["failing_clients"]}
    for bar in page["chart"]["bars"]:
        logins_of[bar["url"]] = sum(bar["numbers"])
        # The bar, and its row in the table.
        assert unescape(content).count(f'<a href="{bar["url"]}"') == 2
    assert len(logins_of) >= 10 + 24
    expiring_of = {url: int(n) for _title, row in page["expiry_rows"][:3] for _days, n, url in row}
    for link in links | logins_of.keys() | expiring_of.keys():
        shown = client.get(link)
        assert shown.status_code == 200, link
        if link in logins_of:
            assert shown.context["cl"].queryset.count() == logins_of[link], link
        if link in expiring_of:
            assert shown.context["count"] == expiring_of[link] > 0, link
    monkeypatch.setattr(counting, "MAX_FAILING", 1)
    limited = client.get(reverse("admin:index"))
    assert len(limited.context["failing_clients"]) == 1
    assert "Show all refused logins" in text_of(limited)


MOST = 36  # session, user and its permissions are four of them


class Registry:
    """One record of each kind, below which more are added."""

    def __init__(self) -> None:
        self.at = timezone.now()
        self.role = make.intermediary()
        self.user = make.credential(system_user__taxpayer=self.role.taxpayer).system_user
        self.permission = make.permission(intermediary=self.role)
        self.api = make.api_secret().protected_api
        self.account = with_totp(new_staff("viewer", "zul"))
        self.add(3)

    def add(self, count: int) -> None:
        soon = self.at + timedelta(days=1)
        for _ in range(count):
            number = make.system_user(taxpayer=self.role.taxpayer, expires_at=soon).pk
            make.credential(system_user=self.user, slot=None, revoked_at=self.at)
            other = make.credential(expires_at=soon).system_user
            make.intermediary(taxpayer=other.taxpayer, active_until=soon)
            make.permission(intermediary=self.role)
            make.permission(taxpayer=self.role.taxpayer)
            make.api_secret()
            with_totp(new_staff("viewer", f"viewer-{number}"))
            for user, hours in ((self.user, 2), (other, 3), (other, 2), (other, 1)):
                reason = "no_permission" if hours < 3 else ""
                stored_login(self.at - timedelta(hours=hours), reason, user)
            about = {"object_type": "systemuser", "object_id": str(self.user.pk)}
            Change.objects.create(by="x", at=self.at, action="block_system_user", **about)

    def urls(self) -> Iterator[str]:
        for pages in ADMINS:
            yield list_url(pages.model)
            if isinstance(pages, ExportingAdmin):
                yield f"{list_url(pages.model)}export.csv"
        user: Any = self.user
        records: tuple[Model, ...] = (user, user.taxpayer, self.role, self.permission, self.api)
        yield from map(page_url, (*records, self.account, Change.objects.earliest("pk")))
        yield task_url(user, "block_system_user")
        yield f"{task_url(user, 'revoke_secret')}?secret={user.credentials.get(slot=1).pk}"
        yield task_url(user.taxpayer, "deactivate_taxpayer")
        yield from (reverse("admin:index"), reverse("admin:taxpayers_change_report"))
        yield f"{reverse('admin:ending_soon')}?kind=secret"
        today = timezone.localdate()
        yield f"{reverse('admin:taxpayers_change_as_of')}?about={user.client_id}&day={today}"


def counted(client: Client, url: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        answer: Any = client.get(url)
        assert answer.status_code in (200, 302), url  # the history leads to its report
        if answer.streaming:
            b"".join(answer.streaming_content)
    return len([one for one in queries if one["sql"].startswith("SELECT")])


@pytest.mark.slow
def test_no_page_takes_more_queries_for_many_records_than_for_few(boss: Client) -> None:
    registry = Registry()
    few = {url: counted(boss, url) for url in registry.urls()}
    assert {url: count for url, count in few.items() if count > MOST} == {}
    registry.add(25)
    many = {url: counted(boss, url) for url in few}
    assert {url: (few[url], many[url]) for url in few if many[url] > few[url]} == {}
