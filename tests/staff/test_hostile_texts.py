"""What was stored, uploaded or sent is a text on every page, and never markup."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from identity.staff.models import StaffSignIn, WaitingChange
from identity.webhooks.models import WebhookEndpoint
from taxpayers.models import Change, PermissionCode, SystemUser, Taxpayer
from tests.every_address.test_staff import NEEDED, url_of
from tests.staff.test_frame import assert_has_the_frame
from tests.support import make
from tests.support.accounts import new_staff, with_totp
from tests.support.erp import new_erp
from tests.support.staff import list_url, opened, task_url
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent, SigningKey

pytestmark = pytest.mark.django_db
# Each is another text, so that it is known which of them a page shows.
TEXTS = (
    *("taxpayer", "agent", "system-user", "blocked-by", "blocked-reason", "author", "reason"),
    *("label", "before", "user-agent", "api", "account", "asked-by", "why-asked", "code"),
    *("revoked-by", "revoked-why", "reference", "hook", "program"),
    *("search", "person", "cell", "file", "filter"),  # sent, not stored
)


def hostile(name: str) -> str:
    return f'"><x-{name}>'


@pytest.fixture
def records(settings: Settings) -> dict[str, Model]:
    """One of each kind, with such a text in every field that holds one."""
    settings.MTLS_URL = "https://mtls.id.example.org"
    at, soon = timezone.now(), timezone.now() + timedelta(days=9)
    role = make.intermediary(taxpayer__name=hostile("agent"), active_until=soon)
    erp = new_erp(taxpayer=role.taxpayer, name=hostile("system-user"), expires_at=soon)
    user = erp.system_user
    blocked = {"blocked_by": hostile("blocked-by"), "blocked_reason": hostile("blocked-reason")}
    SystemUser.objects.filter(pk=user.pk).update(blocked_at=at, **blocked)
    erp.login(headers={"user-agent": hostile("user-agent")})
    permission = make.permission(
        intermediary=role, taxpayer__name=hostile("taxpayer"), valid_until=soon
    )
    revoked = make.permission(intermediary=role, revoked_at=at)
    change = {"by": hostile("author"), "reason": hostile("reason"), "label": hostile("label")}
    renamed = {"before": {"name": hostile("before")}, "after": {"name": "x"}}
    ended = {"by": hostile("revoked-by"), "reason": hostile("revoked-why")}
    for row, action, values in (
        (permission.taxpayer, "rename_taxpayer", renamed),
        (user, "change_system_user", renamed),
        (revoked, "revoke_permission", ended),
        (permission, "extend_permission", renamed),
    ):
        kind = row._meta.model_name
        about = {"action": action, "object_type": kind, "object_id": row.pk, "at": at}
        Change.objects.create(**change | about | values)
    api = make.api_secret(protected_api__name=hostile("api")).protected_api
    account = with_totp(new_staff("viewer", "canary"))
    account.first_name = hostile("account")
    account.save()
    asked = {"asked_by": hostile("asked-by"), "reason": hostile("why-asked")}
    WaitingChange.objects.create(
        account_id=account.pk, action="activate_account", asked_at=at, expires_at=soon, **asked
    )
    PermissionCode.objects.update(description=hostile("code"))
    made: list[Model] = [
        *(user, permission.taxpayer, permission, role, api, PermissionCode.objects.all()[0]),
        *(Change.objects.latest("pk"), LoginEvent.objects.latest("pk")),
        make.permission_request(intermediary=role, own_reference=hostile("reference")),
        account,
        WebhookEndpoint.objects.create(url="https://x", created_at=at, description=hostile("hook")),
        StaffSignIn.objects.create(at=at, outcome="signed in", program=hostile("program")),
    ]
    return {f"{row._meta.app_label}_{row._meta.model_name}": row for row in made}


def pages(client: Client, records: dict[str, Model]) -> Any:
    """Every page of the staff that shows what is stored, and those that show what was sent."""
    read_key_ring(timezone.now())  # makes the first one
    records["tokens_signingkey"] = SigningKey.objects.get()
    for name in NEEDED:
        if not name.endswith(("_csv", "_xlsx", "_suggest")):
            yield client.get(url_of(name, records), follow=True)
    user: Any = records["taxpayers_systemuser"]
    permission: Any = records["taxpayers_grantedpermission"]
    text, today = hostile("search"), f"{timezone.localdate()}"
    for url, query in {
        "/admin/": {},
        "/admin/no-such-page/": {},
        "/admin/search/": {"q": text},
        "/admin/search/ ": {"q": "x-"},
        "/admin/ending-soon/": {"within": "90"},
        f"{list_url(Taxpayer)}": {"q": text},
        f"{list_url(LoginEvent)}": {"q": user.taxpayer.tin, "reason": hostile("filter")},
        f"{list_url(Change)}report/": {"by": hostile("person")},
        f"{list_url(Change)}report/ ": {},
        f"{list_url(Change)}as_of/": {"about": user.client_id, "day": today},
        f"{list_url(Change)}as_of/ ": {"about": permission.taxpayer.tin, "day": today},
        f"{list_url(LoginEvent)}what_would_happen/": {"client_id": user.client_id},
    }.items():
        yield client.get(url.strip(), query)
    for row, task in ((user, "extend_system_user"), (permission, "revoke_permission")):
        sent = {"action": f"bulk_{task}", "_selected_action": row.pk}
        yield client.post(list_url(type(row)), sent)
    rotate = task_url(user, "rotate_secret")
    yield client.post(rotate, opened(client, rotate) | {"reason": "x"})
    rows = f"tin,name\nC7000000009,{hostile('cell')[2:]}\n"
    file = SimpleUploadedFile(f"{hostile('file')[2:]}.csv", rows.encode())
    yield client.post(task_url(Taxpayer, "import_registry"), {"file": file}, follow=True)


def test_a_hostile_text_is_only_a_text_on_every_page_and_each_has_the_frame(
    boss: Client, records: dict[str, Model]
) -> None:
    wrong, seen = [], set()
    for page in pages(boss, records):
        content = page.content.decode()
        path = page.request["PATH_INFO"]
        assert_has_the_frame(content, path, "test")
        wrong += [(path, name) for name in TEXTS if f"<x-{name}" in content]
        seen |= {name for name in TEXTS if f"&lt;x-{name}&gt;" in content}
    assert wrong == []
    assert seen == {*TEXTS}
