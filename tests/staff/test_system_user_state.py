"""The state of a system user on the pages is what its next login gets (contract 1 and 4)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from identity.staff.framework.badges import Badge, badge_of_system_user
from taxpayers.models import Credential, SystemUser, Taxpayer
from taxpayers.services import Author, register_system_user_without_secret
from taxpayers.services import revoke_credential as revoke_secret_by_service
from taxpayers.services.credential_changes import store_last_end
from tests.client_auth.key_erp import jwks, new_pair
from tests.support import make
from tests.support.erp import Erp, new_erp
from tests.support.staff import list_url, page_url, text_of

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
BY: dict[str, Any] = {"by": Author("mariam")}


Change = Callable[[SystemUser], object]


def set_secrets(**values: Any) -> Change:
    def change(user: SystemUser) -> None:
        user.credentials.update(**values)
        store_last_end(user)

    return change


def set_user(**values: Any) -> Change:
    return lambda user: SystemUser.objects.filter(pk=user.pk).update(**values)


def deactivate(user: SystemUser) -> None:
    Taxpayer.objects.filter(pk=user.taxpayer_id).update(is_active=False)


def give_another_secret(user: SystemUser) -> None:
    make.credential(system_user=user)


expire_secret = set_secrets(expires_at=timezone.now() - timedelta(seconds=1))
revoke_credential = set_secrets(slot=None, revoked_at=timezone.now())
block = set_user(blocked_at=timezone.now(), blocked_by="ravi", blocked_reason="leaked")
expire, remove_scopes = set_user(expires_at=timezone.now() - DAY), set_user(scopes="Former")
CASES: list[tuple[str, tuple[Change, ...], str]] = [
    ("Active", (), ""),
    ("No valid secret", (expire_secret,), "secret_expired"),
    ("No valid secret", (revoke_credential,), "secret_revoked"),
    ("Blocked", (block,), "system_user_blocked"),
    ("Expired", (expire,), "system_user_expired"),
    ("Taxpayer not active", (deactivate,), "taxpayer_inactive"),
    ("No valid scope", (remove_scopes,), "invalid_scope"),
    ("No valid secret Blocked", (block, revoke_credential), "secret_revoked"),
    ("Blocked Expired Taxpayer not active", (deactivate, expire, block), "system_user_blocked"),
    (
        "Blocked Expired Taxpayer not active No valid scope",
        (remove_scopes, deactivate, expire, block),
        "system_user_blocked",
    ),
    ("Active", (revoke_credential, give_another_secret), "secret_revoked"),
]


@pytest.mark.parametrize(("words", "changes", "reason"), CASES)
def test_the_state_is_what_a_login_gets_now_on_every_page(
    words: str, changes: tuple[Change, ...], reason: str, viewer: Client
) -> None:
    erp = new_erp()
    user = erp.system_user
    for change in changes:
        change(user)
    answer = erp.login()
    assert answer.status_code == (400 if reason else 200)
    assert f"/errors/{reason}>" in answer.get("Link", "/errors/>")
    client = viewer
    what_if = f"/admin/tokens/loginevent/what_would_happen/?client_id={user.client_id}"
    for url in (list_url(SystemUser), page_url(user), page_url(user.taxpayer), what_if):
        assert f" {words} " in text_of(client.get(url)), url
    assert "Proves what its tokens must be bound to: not checked" in text_of(client.get(what_if))
    found = list(client.get(f"{list_url(SystemUser)}?state=no_secret").context["cl"].result_list)
    assert found == ([user] if words.startswith("No valid secret") else [])


def test_the_list_without_a_valid_secret_has_those_without_a_valid_key(viewer: Client) -> None:
    at = timezone.now()
    user = register_system_user_without_secret(
        reason="a test",
        taxpayer=make.taxpayer(),
        name="ERP",
        keys=jwks(new_pair()),
        **BY,
        at=at,
    )
    client, url = viewer, f"{list_url(SystemUser)}?state=no_secret"
    assert not client.get(url).context["cl"].result_list
    (key,) = user.credentials.all()
    revoke_secret_by_service(credential=key, reason="lost", **BY, at=at)
    page = client.get(url)
    assert list(page.context["cl"].result_list) == [user]
    assert " No valid key " in text_of(page)


def words_of(badge: Badge) -> list[str]:
    return [str(one.word) for one in (badge, *badge.also)]


def test_the_end_of_the_last_valid_secret_is_announced() -> None:
    at = timezone.now()
    user = make.system_user()
    badge = badge_of_system_user(user, at)  # that never had a secret
    assert (badge.word, badge.is_good) == ("No valid secret", False)
    first = make.credential(system_user=user, expires_at=at + 30 * DAY)
    badge = badge_of_system_user(user, at)
    assert (words_of(badge), badge.is_good) == (["Active", "Ends soon"], True)
    assert f"The last valid one, {first}, ends" in badge.sentence
    make.credential(system_user=user, slot=2, expires_at=at + 31 * DAY)
    assert words_of(badge_of_system_user(user, at)) == ["Active"]
    SystemUser.objects.update(expires_at=at + 5 * DAY)  # it ends before its secrets
    badge = badge_of_system_user(SystemUser.objects.get(), at)
    assert words_of(badge) == ["Active", "Ends soon"]
    assert "last valid secret" not in badge.sentence


def test_refused_logins_are_no_use(erp: Erp, officer: Client) -> None:
    user = erp.system_user
    block(user)
    assert erp.login().status_code == 400
    page = text_of(officer.get(page_url(user)))
    assert "Last login with a token Never" in page
    assert Credential.objects.get().last_used_at is None
    SystemUser.objects.update(blocked_at=None, blocked_by="", blocked_reason="")
    assert erp.login().status_code == 200
    assert Credential.objects.get().last_used_at is not None
    assert "Last login with a token Never" not in text_of(officer.get(page_url(user)))
    assert "Never" not in text_of(officer.get(list_url(SystemUser)))
