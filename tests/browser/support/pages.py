"""Every page of the staff: each list, each kind of record, each task with a record that it is for.

A new list or task is here by itself. A task for a record in a state that none of these has needs
one more in `_prepare`, and a page that is neither needs a line in `_others`.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode
from uuid import uuid4

from django.contrib.admin.utils import quote
from django.test import override_settings
from django.urls import resolve, reverse
from django.utils import timezone
from joserfc.jwk import ECKey

from identity.staff.framework.records import RecordAdmin
from identity.staff.models import StaffSignIn, WaitingChange
from identity.webhooks.models import WebhookEndpoint
from taxpayers.models import DEFAULT_SCOPE, Change, SystemUser
from tests.client_auth.key_erp import new_key_erp
from tests.every_address.test_staff import FOR_ALL_STAFF, NEEDED
from tests.servers.certificates import MTLS_URL
from tests.staff.test_admin_safety import ADMINS
from tests.support import make
from tests.support.accounts import new_staff, signed_in, with_totp
from tokens.models import LoginEvent

URLCONF = "identity.staff.urls"
# Endings of the names of addresses that are no page: files, answers to scripts, what Django has for
# rows that can be edited, and the list of the history, which leads elsewhere.
NO_PAGES = (
    *("_export_csv", "_export_xlsx", "_suggest", "jsi18n"),
    *("_add", "_delete", "_history", "taxpayers_change_changelist"),
)
MOST_RECORDS = 200


def names_of_pages() -> set[str]:
    return {name for name in {*NEEDED, *FOR_ALL_STAFF} if not name.endswith(NO_PAGES)}


def name_of(path: str) -> str:
    return resolve(path.partition("?")[0], URLCONF).url_name or ""


def kind_of(path: str) -> str:
    """Lists share a template, and so do records, and tasks; each other page is one by itself."""
    name = name_of(path)
    tasks = tuple(f"_{task.name}" for pages in ADMINS for task in pages.get_tasks())
    kinds: dict[str, tuple[str, ...]]
    kinds = {"list": ("_changelist",), "record": ("_change",), "task": tasks}
    return next((kind for kind, ends in kinds.items() if name.endswith(ends)), name)


def every_path() -> list[str]:
    """The address of every page. Run it with the database of the service: it adds records."""
    _prepare()
    with override_settings(MTLS_URL=MTLS_URL):  # as of the service
        return [*_others(), *(path for pages in ADMINS for path in _paths_of(pages))]


def _prepare() -> None:
    """Records in the states that the sample day does not have."""
    at, soon = timezone.now(), timezone.now() + timedelta(days=9)
    make.taxpayer(is_active=False)
    make.intermediary(is_active=False)
    role = make.intermediary(active_until=soon)
    make.permission(intermediary=role, valid_until=soon)
    limits = {"allowed_permissions": "documents:view", "allowed_taxpayers": "C2581234010"}
    user = make.system_user(taxpayer=role.taxpayer, expires_at=soon, **limits)
    for slot in (1, 2):
        make.credential(
            system_user=user, slot=slot, allowed_networks="203.0.113.0/24", expires_at=soon
        )
    new_key_erp(token_binding="dpop")
    with_certificate = make.system_user(token_endpoint_auth_method="tls_client_auth")
    make.credential(system_user=with_certificate, certificate_name="CN=erp,C=MY")
    make.credential(system_user=make.system_user(blocked_at=at))
    for secret in ({"expires_at": soon}, {"protected_api__is_active": False}):
        make.api_secret(**secret)
    make.permission_request(intermediary=role)
    key = json.dumps(ECKey.generate_key("P-256").as_dict(private=False))
    connection = {"intermediary": None, "client_id": "", "codes": DEFAULT_SCOPE, "name": "Ledger"}
    make.permission_request(**connection, public_jwk=key)
    imported = {"object_type": "taxpayer", "object_id": make.taxpayer().pk, "label": "C1"}
    Change.objects.create(by="x", action="import_registry", task_id=uuid4(), at=at, **imported)
    WebhookEndpoint.objects.create(url="https://erp.example.org/hooks", created_at=at)
    # Sessions of others may have ended by now, and sign-ins may not have begun.
    signed_in(with_totp(new_staff("viewer", "newcomer")))
    StaffSignIn.objects.create(at=at, outcome=StaffSignIn.SIGNED_IN, username="newcomer")
    promoted = new_staff("viewer", "promoted")
    WaitingChange.objects.create(
        account_id=promoted.pk,
        action="change_role",
        role="registrar",
        asked_by="kumar",
        asked_at=at,
        expires_at=soon,
        reason="a new colleague",
    )
    former = new_staff("auditor", "former.auditor")
    former.is_active = False
    former.save()


def _others() -> list[str]:
    """Pages that are neither a list, nor a record, nor a task; lists with something special."""
    change, user = Change.objects.latest("pk"), SystemUser.objects.exclude(allowed_permissions="")
    client_id = user.latest("pk").client_id
    refused = LoginEvent.objects.filter(reason="system_user_blocked").latest("pk")
    asked = [
        ("index", {}),
        ("ending_soon", {"within": "90"}),
        ("taxpayers_taxpayer_changelist", {"q": "nothing-like-this"}),
        ("taxpayers_systemuser_changelist", {"state": "blocked"}),
        ("taxpayers_change_report", {}),
        ("taxpayers_change_as_of", {}),
        ("taxpayers_change_as_of", {"about": client_id, "day": f"{timezone.localdate()}"}),
        ("tokens_loginevent_what_if", {"client_id": client_id}),
    ]
    paths = []
    for name, query in asked:
        path = reverse(f"admin:{name}", URLCONF)
        paths.append(f"{path}?{urlencode(query)}" if query else path)
    return [
        *paths,
        f"{reverse('staff_search', URLCONF)}?q=sdn",
        reverse("admin:taxpayers_change_task", URLCONF, args=[change.pk]),
        reverse("admin:tokens_loginevent_change", URLCONF, args=[quote(refused.pk)]),
    ]


def _paths_of(pages: RecordAdmin) -> Iterator[str]:
    at = timezone.now()
    records = list(pages.model._default_manager.order_by("-pk")[:MOST_RECORDS])
    yield pages.list_url()
    shown = {pages.record_url(records[0])}
    for task in pages.get_tasks():
        if not task.is_for_record:
            yield task.url()
            continue
        record = next((row for row in records if not task.refusal(row, at)), None)
        assert record is not None, f"add a record for the task {task.name} to _prepare"
        yield task.url(record)
        shown.add(pages.record_url(record))
    yield from sorted(shown)
