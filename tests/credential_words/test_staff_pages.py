"""Staff read what it is: a secret, a key or a certificate, on every page and in the history."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from taxpayers.facts.credential_kind import CredentialKind
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import Author, block_system_user, revoke_secret
from taxpayers.services.secrets import store_last_end
from tests.certificates.addresses import MTLS_URL, PROXY
from tests.certificates.certificate_erp import certificate, new_certificate_erp
from tests.client_auth.key_erp import jwks, new_key_erp, new_pair
from tests.support.command_line import output_of
from tests.support.erp import new_erp
from tests.support.staff import list_url, opened, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
# Where the word is true although the system user has none: a task, a heading, what is for all.
TRUE_PHRASES = re.compile(
    r"change to a secret|keys and secrets|certificates and secrets|who rotates the secrets"
    r"|secrets?, keys? (?:and|or) certificates?|wrong client id, secret, key or certificate"
    r"|secrets? of (?:a )?protected apis?|issued a new secret|user, without a secret"
)


@dataclass
class Case:
    """A system user of one kind, a login with what is right and with what is not registered."""

    kind: CredentialKind
    erp: Any
    wrong: Callable[[], Any]

    @property
    def user(self) -> SystemUser:
        user: SystemUser = self.erp.system_user
        return user

    @property
    def row(self) -> Credential:
        """The only one of it."""
        return self.user.secrets.get()


@pytest.fixture(params=list(CredentialKind))
def case(request: Any, settings: Settings, db: None) -> Case:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = MTLS_URL, [PROXY]
    kind: CredentialKind = request.param
    if kind is CredentialKind.KEY:
        key_erp = new_key_erp()
        return Case(kind, key_erp, lambda: key_erp.login(key_erp.assertion(pair=new_pair())))
    if kind is CredentialKind.CERTIFICATE:
        with_certificate = new_certificate_erp()
        return Case(kind, with_certificate, lambda: with_certificate.login(certificate("CN=other")))
    erp = new_erp()
    other = new_erp().client_secret
    return Case(kind, erp, lambda: erp.login(client_secret=other))


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer", "ravi")


def read(officer: Client, case: Case, url: str, query: Any = None, **post: Any) -> str:
    """The text of the page; it has the word only where that is true."""
    answer = officer.post(url, post, follow=True) if post else officer.get(url, query, follow=True)
    text = text_of(answer)
    if case.kind is not CredentialKind.SECRET:
        rest = TRUE_PHRASES.sub(" ", text.lower())
        assert "secret" not in rest, re.findall(r".{0,80}secret.{0,80}", rest)
    return text


def add_another(officer: Client, case: Case) -> None:
    """A second one, on the staff pages."""
    task, form = {
        CredentialKind.SECRET: ("rotate_secret", {}),
        CredentialKind.KEY: ("register_client_key", {"keys": jwks(new_pair())}),
        CredentialKind.CERTIFICATE: (
            "register_client_certificate",
            {"kind": "", "text": certificate("CN=new,C=MY").pem},
        ),
    }[case.kind]
    url = task_url(case.user, task)
    assert officer.post(url, opened(officer, url) | form, follow=True).status_code == 200
    assert case.user.secrets.count() == 2


@pytest.mark.slow
def test_each_task_and_the_history_say_what_it_is(officer: Client, case: Case) -> None:
    row, kind = case.row, case.kind.value
    add_another(officer, case)
    for task, values, done, action in (
        (
            "change_secret",
            {"networks": "127.0.0.0/8"},
            f"{kind.capitalize()} {row} may be used from 127.0.0.0/8 only.",
            f"Changed from where a {kind} may be used",
        ),
        (
            "retire_secret",
            {"last_day": f"{timezone.localdate() + 9 * DAY}"},
            f"The last day of {kind} {row} is set.",
            f"Set the last day of a {kind}",
        ),
        (
            "revoke_secret",
            {},
            f"{kind.capitalize()} {row} is revoked.",
            f"Revoked a {kind}",
        ),
    ):
        url = task_url(case.user, task)
        assert f"{row}" in read(officer, case, url, {"secret": row.pk}), task
        form = {"secret": row.pk, "reason": "asked by letter", **values}
        assert done in read(officer, case, url, **form)
        change = Change.objects.get(action=task)
        for page in (page_url(case.user), list_url(Change), page_url(change)):
            assert action in read(officer, case, page), page
        report = reverse("admin:taxpayers_change_report")
        assert action in read(officer, case, report, {"about": case.user.client_id})
    shown = read(officer, case, page_url(Change.objects.get(action="revoke_secret")))
    assert f"{kind.capitalize()} {row}" in shown
    assert f"{kind.capitalize()} revoked" in shown
    created = Change.objects.filter(after__has_key="secret_expires_at").latest("pk")
    assert f"{kind.capitalize()} expires" in read(officer, case, page_url(created))


def test_a_change_from_before_the_kind_was_stored_gets_a_text_that_is_true(
    officer: Client, case: Case
) -> None:
    revoke_secret(secret=case.row, reason="r", by=Author("x"), at=timezone.now())
    change = Change.objects.get(action="revoke_secret")
    before, after = ({**values} for values in (change.before, change.after))
    del before["credential"], after["credential"]
    Change.objects.filter(pk=change.pk).update(before=before, after=after)
    shown = read(officer, case, page_url(change))
    assert "Revoked a secret, key or certificate" in shown
    assert f"Secret, key or certificate {case.row}" in shown


def test_the_tasks_for_several_say_what_they_are(officer: Client, case: Case) -> None:
    named = f"{case.kind.value} {case.row}"

    def preview(task: str, **form: str) -> str:
        chosen = {"action": f"bulk_{task}", "_selected_action": case.user.pk, **form}
        return read(officer, case, list_url(SystemUser), **chosen)

    shown = preview("revoke_secrets", which="every")
    assert f"Valid: {named}" in shown
    assert f"Revoked: {named}. Nothing else is valid" in shown
    assert "None of them is safe to revoke." in preview("revoke_secrets", which="unused")
    user = block_system_user(
        system_user=case.user, reason="leaked", by=Author("x"), at=timezone.now()
    )
    assert f"Works again: {named}." in preview("unblock_system_user")
    assert "with what is valid" in read(officer, case, task_url(user, "unblock_system_user"))
    revoke_secret(secret=case.row, reason="r", by=Author("x"), at=timezone.now())
    assert f"It has no valid {case.kind.value}." in preview("revoke_secrets", which="every")
    gone = read(officer, case, task_url(case.user, "revoke_secret"))
    assert f"It has no valid {case.kind.value}." in gone


def test_what_ends_soon_says_what_it_is(officer: Client, case: Case) -> None:
    Credential.objects.filter(pk=case.row.pk).update(expires_at=timezone.now() + 3 * DAY)
    store_last_end(case.user)
    kind, url = case.kind.value, reverse("admin:ending_soon")
    shown = read(officer, case, url) if kind != "secret" else text_of(officer.get(url))
    assert f"{kind.capitalize()} {case.user} {case.row}" in shown
    add_another(officer, case)
    assert f"another {kind} is valid until" in text_of(officer.get(url))
    ending = Credential.objects.earliest("expires_at")
    preview = text_of(officer.post(url, {"selected": f"secret:{ending.pk}"}))
    subject = {"certificate": "The registration of the certificate"}.get(kind, f"The {kind}")
    assert f"{subject} …" in preview
    assert text_of(officer.get(url, {"print": "1"}))
    assert "Secrets, keys and certificates" in text_of(officer.get(reverse("admin:index")))


FAILURES = {
    CredentialKind.SECRET: (
        *("Wrong client ID or secret", "Are the client ID and the secret correct?"),
        *("Secret expired", "Is the secret not expired?"),
        *("Secret revoked", "Is the secret not revoked?"),
        "Valid secrets",
    ),
    CredentialKind.KEY: (
        *("Wrong client ID or key", "Are the client ID, the key and its signature correct?"),
        *("Key expired", "Is the key not expired?"),
        *("Key revoked", "Is the key not revoked?"),
        "Valid keys",
    ),
    CredentialKind.CERTIFICATE: (
        *("Wrong client ID or certificate", "Are the client ID and the certificate correct?"),
        *("Certificate expired", "Is the registration of the certificate not expired?"),
        *("Certificate revoked", "Is the registration of the certificate not revoked?"),
        "Valid certificates",
    ),
}


def test_why_a_login_failed_says_what_it_is(officer: Client, case: Case) -> None:
    wrong, is_right, expired, not_expired, revoked, not_revoked, valid = FAILURES[case.kind]

    def check(response: Any, what: str, question: str) -> str:
        event = LoginEvent.objects.get(pk=response["correlationId"])
        page = read(officer, case, page_url(event))
        assert f"{question} failed" in page
        assert f"{what}." in page
        assert what in read(officer, case, list_url(LoginEvent), {"q": case.user.client_id})
        assert f"[NO] {question}" in output_of("explain_login", str(event.pk))
        return page

    row = case.row
    assert f"{valid} {row}" in check(case.wrong(), wrong, is_right)
    secrets = Credential.objects.filter(pk=row.pk)
    end = row.expires_at
    secrets.update(created_at=end - 900 * DAY, expires_at=timezone.now() - DAY)
    page = check(case.erp.login(), expired, not_expired)
    assert f"{case.kind.value.capitalize()} {row} Expired" in page
    secrets.update(expires_at=end)
    revoke_secret(secret=case.row, reason="r", by=Author("x"), at=timezone.now())
    check(case.erp.login(), revoked, not_revoked)


def test_a_simulation_and_a_token_say_what_it_is(officer: Client, case: Case) -> None:
    _wrong, is_right, _expired, not_expired, *_rest = FAILURES[case.kind]
    event = LoginEvent.objects.get(pk=case.erp.login()["correlationId"])
    page = read(officer, case, page_url(event))
    assert f"{is_right} passed" in page
    assert f"[ok] {not_expired}" in output_of("explain_login", str(event.pk))
    what_if = reverse("admin:tokens_loginevent_what_if")
    asked = {"client_id": case.user.client_id}
    shown = read(officer, case, what_if, asked)
    assert f"{case.kind.value.capitalize()} {case.row} Valid" in shown
    assert f"{not_expired} passed" in shown
    case.user.secrets.all().delete()
    none = f"It has no {case.kind.value}, so it cannot log in."
    assert none in read(officer, case, what_if, asked)
    assert none in read(officer, case, page_url(case.user))


def test_as_of_a_date_says_what_it_was_and_from_where(officer: Client, case: Case) -> None:
    form = {"secret": case.row.pk, "networks": "192.0.2.0/24", "reason": "asked"}
    officer.post(task_url(case.user, "change_secret"), form)
    url = reverse("admin:taxpayers_change_as_of")
    asked = {"about": case.user.client_id, "day": f"{timezone.localdate()}"}
    shown = read(officer, case, url, asked)
    badge = "" if case.kind is CredentialKind.SECRET else f" {case.kind.value.capitalize()}"
    assert f"{case.row}{badge}" in shown
    assert "from 192.0.2.0/24 only" in shown
    assert f"Logs in with {case.user.get_token_endpoint_auth_method_display()}" in shown
    is_bound = case.kind is CredentialKind.CERTIFICATE
    assert ("Tokens bound to The client's TLS certificate" in shown) is is_bound
