"""Staff read what it is, a secret, a key or a certificate, wherever that is known."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from taxpayers.models import Change, SystemUser
from taxpayers.services import Author, revoke_credential
from tests.certificates.addresses import MTLS_URL, PROXY
from tests.certificates.certificate_erp import certificate, new_certificate_erp
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.support.command_line import output_of
from tests.support.erp import new_erp
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


# What is registered for the client, a login with another one, and what pages say of that, and of
# one that was revoked.
Words = tuple[str, str]
CASES: dict[str, tuple[Any, Any, Words, Words]] = {
    "secret": (
        new_erp,
        lambda erp: erp.login(client_secret=new_erp().client_secret),
        ("Wrong client ID or secret", "Client ID and secret correct"),
        ("Secret revoked", "Secret not revoked"),
    ),
    "key": (
        new_key_erp,
        lambda erp: erp.login(erp.assertion(pair=new_pair())),
        ("Wrong client ID or key", "Client ID, key and its signature correct"),
        ("Key revoked", "Key not revoked"),
    ),
    "certificate": (
        new_certificate_erp,
        lambda erp: erp.login(certificate("CN=other")),
        ("Wrong client ID or certificate", "Client ID and certificate correct"),
        ("Certificate revoked", "Registration of the certificate not revoked"),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_pages_commands_and_the_history_say_what_it_is(settings: Settings, kind: str) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = MTLS_URL, [PROXY]
    (new, send_another, wrong, revoked), officer = CASES[kind], staff_client("security officer")
    erp = new()
    row, title = erp.system_user.credentials.get(), kind.capitalize()
    assert_login_says(officer, send_another(erp), *wrong)
    bulk = {
        "action": "bulk_revoke_secrets",
        "which": "every",
        "_selected_action": row.system_user_id,
    }
    assert f"Valid: {kind} {row}" in text_of(officer.post(list_url(SystemUser), bulk))

    revoke_credential(credential=row, reason="r", by=Author("x"), at=timezone.now())
    assert_login_says(officer, erp.login(), *revoked)
    none = f"It has no valid {kind}."
    assert none in text_of(officer.get(task_url(row.system_user, "revoke_secret"), follow=True))

    change = Change.objects.get(action="revoke_secret")
    report = officer.get(reverse("admin:taxpayers_change_report"), {"about": erp.client_id})
    for page in (report, officer.get(page_url(row.system_user))):
        assert f"Revoked a {kind}" in text_of(page)
    shown = text_of(officer.get(page_url(change)))
    assert f"{title} {row}" in shown
    assert f"{title} revoked" in shown
    del change.before["credential"], change.after["credential"]  # as older changes are stored
    Change.objects.filter(pk=change.pk).update(before=change.before, after=change.after)
    shown = text_of(officer.get(page_url(change)))
    assert "Revoked a secret, key or certificate" in shown
    assert f"Secret, key or certificate {row}" in shown


def assert_login_says(officer: Client, response: Any, what: str, question: str) -> None:
    event = LoginEvent.objects.get(pk=response["correlationId"])
    page = text_of(officer.get(page_url(event)))
    assert f"{question}: no" in page
    assert f"{what}." in page
    assert what in text_of(officer.get(list_url(LoginEvent), {"q": event.client_id}))
    assert f"[NO] {question}" in output_of("explain_login", str(event.pk))
