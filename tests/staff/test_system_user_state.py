"""System users on the pages: what a login gets now, what uses which secret (contract 1, 3, 4)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from identity.staff.framework.badges import Badge, badge_of_system_user
from identity.staff.logins import secret_use
from identity.staff.logins.secret_use import use_of_secrets
from identity.staff.system_users.revoke_secrets import advice_on, is_in_use, is_safe_to_revoke
from taxpayers.models import Change, Credential, SystemUser, Taxpayer
from taxpayers.moments import moment_text
from taxpayers.services import revoke_credential
from taxpayers.services.credential_changes import store_last_end
from tests.certificates.certificate_erp import certificate, new_certificate_erp
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.servers.certificates import MTLS_URL, PROXY
from tests.staff.test_lists import act_on
from tests.support import make
from tests.support.command_line import output_of
from tests.support.erp import event_of, new_erp
from tests.support.factories import stored_login
from tests.support.moments import why
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


Step = Callable[[SystemUser], object]


def set_secrets(**values: Any) -> Step:
    def change(user: SystemUser) -> None:
        user.credentials.update(**values)
        store_last_end(user)

    return change


def set_user(**values: Any) -> Step:
    return lambda user: SystemUser.objects.filter(pk=user.pk).update(**values)


def deactivate(user: SystemUser) -> None:
    Taxpayer.objects.filter(pk=user.taxpayer_id).update(is_active=False)


expire_secret = set_secrets(expires_at=timezone.now() - timedelta(seconds=1))
revoke = set_secrets(slot=None, revoked_at=timezone.now())
block = set_user(blocked_at=timezone.now(), blocked_by="ravi", blocked_reason="leaked")
expire, remove_scopes = set_user(expires_at=timezone.now() - DAY), set_user(scopes="Former")
STATES: list[tuple[str, tuple[Step, ...], str]] = [
    ("Active", (), ""),
    ("No valid secret", (expire_secret,), "secret_expired"),
    ("No valid secret", (revoke,), "secret_revoked"),
    ("Blocked", (block,), "system_user_blocked"),
    ("Expired", (expire,), "system_user_expired"),
    ("Taxpayer not active", (deactivate,), "taxpayer_inactive"),
    ("No valid scope", (remove_scopes,), "invalid_scope"),
    ("No valid secret Blocked", (block, revoke), "secret_revoked"),
    ("Blocked Expired Taxpayer not active", (deactivate, expire, block), "system_user_blocked"),
    (
        "Blocked Expired Taxpayer not active No valid scope",
        (remove_scopes, deactivate, expire, block),
        "system_user_blocked",
    ),
    ("Active", (revoke, lambda user: make.credential(system_user=user)), "secret_revoked"),
]


@pytest.mark.parametrize(("words", "changes", "reason"), STATES)
def test_the_state_is_what_a_login_gets_now_on_every_page(
    words: str, changes: tuple[Step, ...], reason: str, viewer: Client
) -> None:
    erp = new_erp()
    user = erp.system_user
    for change in changes:
        change(user)
    answer = erp.login()
    assert answer.status_code == (400 if reason else 200)
    assert f"/errors/{reason}>" in answer.get("Link", "/errors/>")
    what_if = f"/admin/tokens/loginevent/what_would_happen/?client_id={user.client_id}"
    for url in (list_url(SystemUser), page_url(user), page_url(user.taxpayer), what_if):
        assert f" {words} " in text_of(viewer.get(url)), url
    assert "Proves what its tokens must be bound to: not checked" in text_of(viewer.get(what_if))
    found = list(viewer.get(f"{list_url(SystemUser)}?state=no_secret").context["cl"].result_list)
    assert found == ([user] if words.startswith("No valid secret") else [])


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
    Credential.objects.filter(slot=2).delete()
    for days in (30, 5):  # it ends with its last secret, or before
        SystemUser.objects.update(expires_at=at + days * DAY)
        badge = badge_of_system_user(SystemUser.objects.get(), at)
        assert words_of(badge) == ["Active", "Ends soon"]
        assert "The last valid one" not in badge.sentence


HOUR = timedelta(hours=1)


def log_in(
    secret: Credential,
    at: datetime,
    *,
    reason: str = "",
    address: str = "203.0.113.4",
    **facts: Any,
) -> LoginEvent:
    facts = {"user_agent": "SAP", "secret_id": secret.pk, "source_address": address} | facts
    return stored_login(at, reason, secret.system_user, **facts)


def test_the_logins_of_each_secret_are_counted_by_address_and_program() -> None:
    at = timezone.now()
    old = make.credential()
    user = old.system_user
    new = make.credential(system_user=user, slot=2)
    for moment, address in ((at - 2 * DAY, "203.0.113.4"), (at - DAY, "203.0.113.9")):
        log_in(old, moment, address=address)
    log_in(old, at - 3 * DAY, address="203.0.113.9", user_agent="curl/8")
    log_in(new, at - HOUR, reason="invalid_scope", address="203.0.113.7")
    log_in(old, at - 31 * DAY)  # too long ago
    log_in(make.credential(), at - HOUR)  # another client's

    used = use_of_secrets(user, [old, new], at)
    assert used.is_complete
    of_old, of_new = used.of[old.pk], used.of[new.pk]
    assert of_old.issued == 3
    assert of_old.addresses == [("203.0.113.9", 2), ("203.0.113.4", 1)]
    assert of_old.programs == [("SAP", 2), ("curl/8", 1)]
    assert of_old.last is not None
    assert (of_old.last.at, of_old.last.source_address) == (at - DAY, "203.0.113.9")
    assert (of_new.issued, of_new.refused, of_new.last) == (0, 1, None)
    assert of_new.last_refused is not None
    assert of_new.last_refused.source_address == "203.0.113.7"


def test_of_a_busy_client_only_the_latest_logins_are_read(
    monkeypatch: pytest.MonkeyPatch, officer: Client
) -> None:
    monkeypatch.setattr(secret_use, "MAX_LOGINS", 3)
    at = timezone.now().replace(second=0, microsecond=0)
    stored = at - 5 * DAY - timedelta(seconds=65)  # a minute, by a clock that is behind
    quiet = make.credential(created_at=at - 9 * DAY, last_used_at=stored)
    user = quiet.system_user
    busy = make.credential(system_user=user, slot=2, last_used_at=at - HOUR)
    log_in(quiet, at - 5 * DAY, address="203.0.113.99")
    for minutes in range(5):
        log_in(busy, at - HOUR - minutes * timedelta(minutes=1))
    used = use_of_secrets(SystemUser.objects.get(pk=user.pk), [quiet, busy], at)
    assert not used.is_complete
    assert used.since == at - HOUR - timedelta(minutes=2)
    assert (used.of[busy.pk].issued, used.of[quiet.pk].issued) == (3, 0)
    # … but from where the quiet one was last used is found by the minute that is stored for it.
    last = used.of[quiet.pk].last
    assert last is not None
    assert last.source_address == "203.0.113.99"
    page = text_of(officer.get(page_url(user)))
    assert moment_text(stored) not in page
    assert page.count(moment_text(at - 5 * DAY)) == 2  # of the secret, and of what uses it
    assert "It logs in very often: only its latest logins are shown, those since" in page
    assert "from 203.0.113.99" in page


def test_the_page_shows_what_uses_each_secret_and_who_still_sends_an_ended_one(
    officer: Client,
) -> None:
    at = timezone.now()
    ended = make.credential(slot=None, revoked_at=at - DAY)
    user = ended.system_user
    valid = make.credential(system_user=user, last_used_at=at - HOUR)
    forgotten = make.credential(system_user=user, slot=None, revoked_at=at - 90 * DAY)
    log_in(valid, at - HOUR)
    log_in(ended, at - 2 * HOUR, reason="secret_revoked", address="203.0.113.66")
    response = officer.get(page_url(user))
    page, html = text_of(response), response.content.decode()
    assert "Logins with a token 1" in page
    assert "203.0.113.4 1 login" in page
    assert "SAP 1 login" in page
    assert "Refused logins 1 login, last" in page
    assert "from 203.0.113.66" in page
    assert f'id="use-{ended.pk}"' in html
    assert f'id="use-{forgotten.pk}"' not in html  # ended, and not sent since
    assert "<style" not in html[html.index('class="staff"') :]
    assert page.count("Last login with a token Never") == 1  # refused logins are no use
    make.credential()
    assert text_of(officer.get(list_url(SystemUser))).count("Never") == 1


@pytest.mark.parametrize(
    ("old_days_ago", "new_days_ago", "old_says", "new_says", "in_use"),
    [
        (3, 1, "It may go: it is no longer used", "Keep it: it is the newest", (False, True)),
        (0.1, 0.2, "Keep it for now: it is in use", "Keep it: it is the newest", (True, True)),
        (3, None, "Keep it for now: it is in use", "Not used yet.", (True, False)),
        (1.5, 1, "Keep it for now: it is in use", "Keep it: it is the newest", (True, True)),
        (1, 3, "Keep it for now: it is in use", "Keep it: it is the newest", (True, True)),
        (31, None, "It may go: it is no longer used", "Not used yet.", (False, False)),
        (None, 1, "It may go: it was never used", "Keep it: it is the newest", (False, True)),
    ],
)
def test_the_advice_says_whether_a_secret_may_go(
    old_days_ago: float | None,
    new_days_ago: float | None,
    old_says: str,
    new_says: str,
    in_use: tuple[bool, bool],
) -> None:
    at = timezone.now()
    user = make.system_user()

    def secret(slot: int, age: int, used_days_ago: float | None) -> Credential:
        used = None if used_days_ago is None else at - used_days_ago * DAY
        return make.credential(
            system_user=user, slot=slot, created_at=at - age * DAY, last_used_at=used
        )

    pair = [secret(1, 90, old_days_ago), secret(2, 10, new_days_ago)]
    pair = list(SystemUser.objects.get().credentials.order_by("pk"))
    texts = []
    for one in pair:
        advice = advice_on(one, pair, at)
        assert advice is not None
        assert is_safe_to_revoke(one, pair, at) is advice.may_go
        texts.append(str(advice.text))
    assert texts[0].startswith(old_says)
    assert texts[1].startswith(new_says)
    assert tuple(is_in_use(one, pair, at) for one in pair) == in_use


@pytest.mark.parametrize(
    ("used_days_ago", "says"),
    [
        (None, "Nothing else is valid."),
        (60, "Nothing else is valid."),
        (0.1, "Keep it: it is in use, and nothing else is valid."),
    ],
)
def test_the_only_valid_secret_is_not_advised_to_go(used_days_ago: float | None, says: str) -> None:
    at = timezone.now()
    used_at = None if used_days_ago is None else at - used_days_ago * DAY
    only = make.credential(created_at=at - 90 * DAY, last_used_at=used_at)
    ended = make.credential(system_user=only.system_user, slot=None, revoked_at=at)
    secrets = list(SystemUser.objects.get().credentials.order_by("pk"))
    advice = advice_on(secrets[0], secrets, at)
    assert advice is not None
    assert str(advice.text).startswith(says)
    assert advice_on(ended, secrets, at) is None


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
    without = f"{list_url(SystemUser)}?state=no_secret"
    assert erp.system_user not in officer.get(without).context["cl"].result_list
    assert_login_says(officer, send_another(erp), *wrong)
    page = act_on(officer, SystemUser, "revoke_secrets", [row.system_user], which="every")
    assert f"Valid: {kind} {row}" in text_of(page)

    revoke_credential(credential=row, **why())
    listed = officer.get(without)
    assert list(listed.context["cl"].result_list) == [erp.system_user]
    assert f" No valid {kind} " in text_of(listed)
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
    event = event_of(response)
    page = text_of(officer.get(page_url(event)))
    assert f"{question}: no" in page
    assert f"{what}." in page
    assert what in text_of(officer.get(list_url(LoginEvent), {"q": event.client_id}))
    assert f"[NO] {question}" in output_of("explain_login", str(event.pk))
