"""No page of the staff takes more queries for many records than for few, and none takes many."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework.export import ExportingAdmin
from identity.staff.models import StaffAccount
from taxpayers.models import Change
from tests.staff.test_admin_safety import ADMINS
from tests.support.accounts import new_staff, with_totp
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    ProtectedApiSecretFactory,
    SystemUserFactory,
    stored_login,
)
from tests.support.staff import list_url, page_url, task_url

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MOST = 36  # session, user and its permissions are four of them


class Registry:
    """One record of each kind, below which more are added."""

    def __init__(self) -> None:
        self.at = timezone.now()
        self.role = IntermediaryFactory.create()
        self.user = CredentialFactory.create(system_user__taxpayer=self.role.taxpayer).system_user
        self.permission = GrantedPermissionFactory.create(intermediary=self.role)
        self.api = ProtectedApiSecretFactory.create().protected_api
        self.account = StaffAccount.objects.get(pk=with_totp(new_staff("viewer", "zul")).pk)
        self.add(3)

    def add(self, count: int) -> None:
        soon = self.at + timedelta(days=1)
        for _ in range(count):
            number = SystemUserFactory.create(taxpayer=self.role.taxpayer, expires_at=soon).pk
            CredentialFactory.create(system_user=self.user, slot=None, revoked_at=self.at)
            other = CredentialFactory.create(expires_at=soon).system_user
            IntermediaryFactory.create(taxpayer=other.taxpayer, active_until=soon)
            GrantedPermissionFactory.create(intermediary=self.role)
            GrantedPermissionFactory.create(taxpayer=self.role.taxpayer)
            ProtectedApiSecretFactory.create()
            with_totp(new_staff("viewer", f"viewer-{number}"))
            for user, hours in ((self.user, 2), (other, 3), (other, 2), (other, 1)):
                reason = "no_permission" if hours < 3 else ""
                stored_login(self.at - timedelta(hours=hours), reason, user)
            about = {"object_type": "systemuser", "object_id": str(self.user.pk)}
            Change.objects.create(by="x", at=self.at, action="block_system_user", **about)

    def urls(self) -> Iterator[str]:
        """Every list, every export, the page of each record, and the other pages of staff."""
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
        yield f"{reverse('admin:taxpayers_change_as_of')}?about={user.client_id}&day={self.day}"

    @property
    def day(self) -> str:
        return f"{timezone.localdate()}"


def counted(client: Client, url: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        answer: Any = client.get(url)
        assert answer.status_code in (200, 302), url  # the history leads to its report
        if answer.streaming:
            b"".join(answer.streaming_content)
    return len([one for one in queries if one["sql"].startswith("SELECT")])


def test_no_page_takes_more_queries_for_many_records_than_for_few(boss: Client) -> None:
    registry = Registry()
    few = {url: counted(boss, url) for url in registry.urls()}
    assert {url: count for url, count in few.items() if count > MOST} == {}
    registry.add(25)
    many = {url: counted(boss, url) for url in few}
    assert {url: (few[url], many[url]) for url in few if many[url] > few[url]} == {}
