"""What was changed outside of the service is named, with both values (contract 5)."""

import logging
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from identity.staff.accounts.changes.accounts import create_account
from identity.webhooks.sending.delivering import Deliverer
from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, HistoryCheck, Taxpayer
from taxpayers.services import Author
from taxpayers.services.feed.chain import hash_of
from tests.history.random_changes import CHANGES, SCOPES, Registrar
from tests.support import make
from tests.support.command_line import error_of, json_output_of
from tests.support.factories import SUBMIT, VIEW
from tests.support.staff import text_of

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"by": Author("alice", "192.0.2.7"), "at": AT}
FIRST_HASH = "place 1 (register_taxpayer, C1234567890 Acme)"


@pytest.fixture(autouse=True)
def registry(db: None) -> None:
    """Seven changes and an account, all recorded."""
    taxpayer = services.register_taxpayer(taxpayer=TaxpayerId("C1234567890"), name="Acme", **BY)
    agent = services.register_taxpayer(taxpayer=TaxpayerId("C9876543210"), name="Agent", **BY)
    intermediary = services.register_intermediary(taxpayer=agent, until=None, **BY)
    services.grant_permission(
        taxpayer=taxpayer, intermediary=intermediary, codes=[SUBMIT, VIEW], **BY
    )
    services.register_system_user(reason="a test", taxpayer=taxpayer, name="ERP", **BY)
    services.rename_taxpayer(taxpayer=taxpayer, name="Acme Sdn Bhd", reason="merger", **BY)
    create_account(username="kumar", name="Kumar", role="auditor", reason="new", **BY)


def verified() -> dict[str, Any]:
    return json_output_of("verify_history")


def found() -> str:
    """Everything that the command found; the first of it is what it says on stderr."""
    first = error_of("verify_history")
    check = HistoryCheck.objects.latest("pk")
    assert first.partition(" And ")[0] == check.fault.splitlines()[0]
    return check.fault


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_what_the_services_did_is_unbroken_and_each_record_is_what_its_history_says() -> None:
    found = verified()
    assert (found["changes"], found["fault"], found["differences"]) == (7, "", [])
    assert found["chain_hash"] == Change.objects.get(position=7).chain_hash
    assert verified()["fault"] == ""  # as many as at the check before


@pytest.mark.slow
def test_no_service_makes_a_change_that_its_history_does_not_say(settings: Settings) -> None:
    settings.SCOPES = SCOPES
    registrar = Registrar(Random(1), AT)  # noqa: S311 - repeats the same changes
    for _ in range(400):
        registrar.change()
    assert registrar.made == CHANGES.keys()
    assert verified()["differences"] == []


# What was done in the database -> what the command says of it.
IN_THE_HISTORY = {
    "UPDATE changes SET reason = 'x' WHERE position = 6": "in place 6 (rename_taxpayer,",
    "UPDATE changes SET at = '2026-03-02 12:00:00+00:00' WHERE position = 2": "in place 2 ",
    "UPDATE changes SET by = 'bob' WHERE position = 1": FIRST_HASH,
    "UPDATE changes SET chain_hash = '' WHERE position = 1": FIRST_HASH,
    "DELETE FROM changes WHERE position = 3": "The change in place 3 is missing.",
    "DELETE FROM changes WHERE position = 1": "The change in place 1 is missing.",
    "DELETE FROM changes WHERE position > 5": "after place 5 are missing",
    "DELETE FROM changes": "after place 0 are missing",
}


@pytest.mark.parametrize("statement", IN_THE_HISTORY)
def test_the_first_change_that_does_not_fit_is_named(statement: str) -> None:
    verified()
    execute(statement)
    assert IN_THE_HISTORY[statement] in found().splitlines()[0]


def test_a_history_with_every_hash_made_anew_is_not_that_of_the_last_check() -> None:
    verified()
    execute("UPDATE changes SET reason = 'x' WHERE position = 6")
    before = ""
    for change in Change.objects.order_by("position"):
        change.chain_hash = before = hash_of(change, before)
        change.save(update_fields=["chain_hash"])
    assert "in place 7 (create_account," in found()
    assert "every hash since was made anew" in found()  # also the next time


_COPY = "INSERT INTO {0} ({1}) SELECT {2} FROM {0} LIMIT 1"
_CREDENTIAL = "system_user_id, lookup, hint, public_jwk, allowed_networks, created_at, expires_at"
IN_THE_REGISTRY = {
    "UPDATE taxpayers SET name = 'Evil' WHERE tin = 'C1234567890'": (
        "name is 'Evil', and the history says 'Acme Sdn Bhd'."
    ),
    "UPDATE taxpayers SET is_active = FALSE WHERE tin = 'C9876543210'": "is_active is False, and",
    "UPDATE taxpayers SET rob = '12345' WHERE tin = 'C9876543210'": "rob is '12345', and",
    "UPDATE intermediaries SET is_active = FALSE": "is_active is False, and",
    "UPDATE granted_permissions SET revoked_at = valid_from": "and the history says None.",
    "UPDATE system_users SET token_binding = 'dpop'": "token_binding is 'dpop', and",
    "UPDATE credentials SET revoked_at = created_at, slot = NULL": "secret_revoked_at is ",
    "UPDATE credentials SET allowed_networks = '192.0.2.0/24'": "allowed_networks is ",
    "UPDATE granted_permissions SET valid_until = '2031-01-01 00:00:00+00:00'": (
        "valid_until is '2031-01-01T00:00:00+00:00', and the history says None."
    ),
    "DELETE FROM granted_permission_codes": "codes is [], and the history says",
    "UPDATE system_users SET logins_per_minute = 0": "logins_per_minute is 0, and",
    "UPDATE system_users SET taxpayer_id = (SELECT id FROM taxpayers WHERE name = 'Agent')": (
        "taxpayer is 'C9876543210', and the history says 'C1234567890'."
    ),
    "UPDATE credentials SET expires_at = '2036-01-01 00:00:00+00:00'": (
        "secret_expires_at is '2036-01-01T00:00:00+00:00', and"
    ),
    _COPY.format("credentials", _CREDENTIAL, _CREDENTIAL.replace("lookup, hint", "'x', 'evil'")): (
        "credential …evil: there are 1, and the history says 0."
    ),
    _COPY.format("credentials", _CREDENTIAL, _CREDENTIAL.replace("lookup", "'x'")): (
        ": there are 2, and the history says 1."
    ),
    "DELETE FROM credentials": ": there are 0, and the history says 1.",
    "UPDATE auth_user SET is_superuser = TRUE": "role is 'superuser', and the history says",
    "UPDATE auth_user SET is_active = FALSE": "is_active is False, and the history says True.",
}


@pytest.mark.parametrize("statement", IN_THE_REGISTRY)
def test_a_record_that_differs_from_its_history_is_named_with_both_values(statement: str) -> None:
    execute(statement)
    assert IN_THE_REGISTRY[statement] in found()


def test_a_record_without_a_history_and_a_history_without_its_record_are_named() -> None:
    make.taxpayer(tin="C5555555555", name="Invented")
    execute("DELETE FROM granted_permission_codes", "DELETE FROM granted_permissions")
    said = found()
    assert "taxpayer Invented (C5555555555): the history does not know it." in said
    assert "the history knows it, and it is gone." in said


def test_each_change_is_in_the_log_with_its_hash_when_it_gets_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "taxpayers.history")
    verified()
    assert not caplog.records, "the output of a command is for its operator"
    rename = services.rename_taxpayer(
        taxpayer=Taxpayer.objects.earliest("pk"), name="Later", reason="merger", **BY
    )
    Deliverer().step(0)
    (line,) = caplog.records
    change = Change.objects.latest("pk")
    assert (vars(line)["place"], vars(line)["chain_hash"]) == (8, change.chain_hash)
    assert vars(line)["record"] == f"taxpayer {rename.pk}"


REPORT = reverse("admin:taxpayers_change_report")


def test_auditors_see_since_when_it_is_unbroken_or_what_does_not_fit(auditor: Client) -> None:
    assert "Not verified yet" in text_of(auditor.get(REPORT))
    HistoryCheck.objects.create(at=AT, places=7, chain_hash="x")
    unbroken = text_of(auditor.get(REPORT))
    assert "Unbroken since" in unbroken
    assert "last verified" in unbroken
    assert "7 changes" in unbroken
    HistoryCheck.objects.create(at=AT, places=7, fault="name is '<b>Evil'.\nrob is '1'.")
    page = auditor.get(REPORT)
    assert 'role="alert"' in page.content.decode()
    broken = text_of(page)
    assert "Something was changed outside of this service" in broken
    assert "name is '<b>Evil'. rob is '1'." in broken
