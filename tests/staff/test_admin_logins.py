"""Logins on the staff pages: find one, see why it failed, simulate one."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.logins.reasons import staff_text_of
from identity.staff.logins.what_if import WhatIf
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import Change
from taxpayers.rules import RegistryReason
from tests.client_auth.key_erp import new_key_erp
from tests.support.erp import Erp, new_erp, post
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    SystemUserFactory,
)
from tests.support.staff import list_url, page_url, task_url, text_of
from tokens.explanation import CheckState
from tokens.models import LoginEvent, SigningKey
from tokens.refusals.table import ON_BEHALF_CHECKS

pytestmark = pytest.mark.django_db
WHAT_IF = reverse("admin:tokens_loginevent_what_if")


def event_of(response: object) -> LoginEvent:
    return LoginEvent.objects.get(pk=response["correlationId"])  # type: ignore[index]


def test_a_login_of_an_unknown_client_is_explained_too(viewer: Client) -> None:
    event = event_of(post(b"a=%zz"))
    assert "Malformed request" in text_of(viewer.get(page_url(event)))
    assert viewer.get(page_url(event)).context["records"] == []


def answer(client: Client, **asked: str) -> WhatIf:
    found: WhatIf = client.get(WHAT_IF, asked).context["answer"]
    return found


def what_if(client: Client, **asked: str) -> str:
    return text_of(client.get(WHAT_IF, asked))


def test_a_simulation_on_behalf_of_another_taxpayer(viewer: Client, intermediary: Erp) -> None:
    role = intermediary.system_user.taxpayer.intermediary
    granted = GrantedPermissionFactory.create(intermediary=role)
    represented = str(granted.taxpayer.identifier)
    page = what_if(viewer, client_id=intermediary.client_id, on_behalf_of=represented)
    assert f"Intermediary {intermediary.system_user.taxpayer.identifier}" in page
    assert "documents:submit, documents:view" in page
    assert "A token would be issued." in page
    page = what_if(viewer, client_id=intermediary.client_id, on_behalf_of="C999999")
    assert "The login would be refused: No permission." in page
    assert "The taxpayer granted a permission: no" in page
    for asked, expected in (
        ({}, CheckState.NOT_ASKED),
        ({"on_behalf_of": represented}, CheckState.PASSED),
    ):
        checks = answer(viewer, client_id=intermediary.client_id, **asked).checks
        states = {check.result.state for check in checks if check.result.check in ON_BEHALF_CHECKS}
        assert states == {expected}
    assert not LoginEvent.objects.exists()  # it decides without a login
    assert not Change.objects.exists()


def test_a_simulation_at_another_time(viewer: Client) -> None:
    user = SystemUserFactory.create(expires_at=datetime(2030, 6, 30, 15, 59, 59, tzinfo=UTC))
    CredentialFactory.create(system_user=user, expires_at=datetime(2040, 1, 1, tzinfo=UTC))
    asked = {"client_id": user.client_id}
    for moment, result in {
        "2030-06-30T23:59": "A token would be issued.",
        "2030-07-01T00:00": "refused: System user expired.",
        "2041-01-01T00:00": "refused: Secret expired.",
    }.items():
        assert result in what_if(viewer, **asked, moment=moment)


def test_a_simulation_uses_the_secret_that_expires_last(viewer: Client) -> None:
    at = timezone.now()
    old = CredentialFactory.create(slot=None, revoked_at=at)
    assert "Secret revoked" in what_if(viewer, client_id=old.system_user.client_id)
    new = CredentialFactory.create(system_user=old.system_user, created_at=at - timedelta(days=2))
    assert answer(viewer, client_id=old.system_user.client_id).secret == new
    longer = CredentialFactory.create(system_user=old.system_user, slot=2, created_at=at)
    assert answer(viewer, client_id=f" {old.system_user.client_id} ").secret == longer


def test_a_simulation_shows_each_state_as_it_will_be_then(viewer: Client) -> None:
    at = timezone.now()
    secret = CredentialFactory.create(expires_at=at + timedelta(days=2))
    asked = {"client_id": secret.system_user.client_id}
    now = answer(viewer, **asked)
    moment = f"{timezone.localtime(at + timedelta(days=9)):%Y-%m-%dT%H:%M}"
    then = answer(viewer, moment=moment, **asked)
    assert [now.user_state.word, now.secret_state.word] == ["Active", "Valid"]
    assert [then.user_state.word, then.secret_state.word] == ["No valid secret", "Expired"]


def test_a_simulation_names_the_key_of_a_client_that_has_no_secret(viewer: Client) -> None:
    user = new_key_erp().system_user
    user.credentials.update(expires_at=timezone.now())
    words = answer(viewer, client_id=user.client_id).words
    assert words == staff_text_of(RegistryReason.SECRET_EXPIRED, CredentialKind.KEY)
    assert words != staff_text_of(RegistryReason.SECRET_EXPIRED, CredentialKind.SECRET)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"client_id": "ci_test_nobody"}, "There is no system user with this client ID."),
        ({"client_id": "{known}", "on_behalf_of": "C-1"}, "'C-1' is not a valid identifier"),
        ({"client_id": "{known}", "moment": "soon"}, "Enter a valid date/time."),
        ({"client_id": "{known}", "moment": "0001-01-01T00:00"}, "Enter a valid date/time."),
        ({"client_id": "{known}"}, "It has no secret, so it cannot log in."),
    ],
)
def test_a_simulation_with_wrong_values_shows_why(
    asked: dict[str, str], shown: str, viewer: Client
) -> None:
    known = SystemUserFactory.create().client_id
    asked = {name: value.format(known=known) for name, value in asked.items()}
    assert shown in what_if(viewer, **asked)


def test_the_signing_key_is_rotated_by_a_security_officer(officer: Client) -> None:
    new_erp().login()
    assert "Signing" in text_of(officer.get(list_url(SigningKey)))
    url = task_url(SigningKey, "rotate_signing_key")
    response = officer.post(url, {"alg": "ES256"})
    key = SigningKey.objects.latest("generation")
    assert response["Location"] == page_url(key)
    page = officer.get(page_url(key))
    assert "Published, not yet signing" in text_of(page)
    assert "private" not in page.content.decode().lower().replace("private-", "")
    assert "is published already" in " ".join(
        officer.post(url, {"alg": "ES256"}).context["form"].non_field_errors()
    )
    assert Change.objects.latest("pk").by == "kumar"
