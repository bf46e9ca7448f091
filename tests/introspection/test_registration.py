"""Protected APIs and their secrets: registered, replaced, revoked, and when last used."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from taxpayers.credentials import Prefix, fault_of, hash_secret
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.endpoint.test_event_loop import answers_to
from tests.introspection.api import Api, new_api
from tests.introspection.test_at_once import asked
from tests.support import make
from tests.support.answers import body_of
from tests.support.command_line import json_output_of, output_of
from tokens.calls import ApiSecretUse
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import issue_api_secret, register_protected_api
from tokens.store import django_store as store
from tokens.store.api_secret_use import UsesOfThisMinute, minute_of

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"reason": "contract 7", "by": Author("officer"), "at": AT}


def recorded() -> tuple[str, str, str, dict[str, Any], dict[str, Any]]:
    change = Change.objects.latest("pk")
    assert change.object_type == "protectedapi"
    assert change.label == ProtectedApi.objects.get(pk=change.object_id).history_label
    return change.action, change.by, change.reason, change.before, change.after


def register(**changes: Any) -> Any:
    return register_protected_api(
        **{"name": "Invoicing", "audience": "InvoicingAPI", **BY, **changes}
    )


def test_a_registered_api_has_generated_credentials_of_which_only_a_hash_is_stored() -> None:
    clear = register().credentials.client_secret
    row, secret = ProtectedApi.objects.get(), ProtectedApiSecret.objects.get()
    assert fault_of(row.client_id, Prefix.API_ID, "test") is None
    assert fault_of(clear, Prefix.API_SECRET, "test") is None
    assert (row.name, row.audience, row.is_active) == ("Invoicing", "InvoicingAPI", True)
    assert (secret.lookup, secret.hint) == (hash_secret(clear), clear[-4:])
    assert secret.expires_at == AT + timedelta(days=365)
    assert recorded() == (
        *("register_protected_api", "officer", "contract 7", {}),
        {
            "name": "Invoicing",
            "audience": "InvoicingAPI",
            "secret": f"…{clear[-4:]}",
            "credential": "secret",
            "secret_expires_at": "2027-03-01T12:00:00+00:00",
        },
    )
    assert clear not in str(Change.objects.values())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"audience": "OtherAPI"}, "There is no audience OtherAPI. Choose from: InvoicingAPI."),
        ({"name": " "}, "Give a name"),
        ({"reason": ""}, "Give a reason"),
        ({"secret_expires_at": AT}, "Choose a later date"),
    ],
)
def test_a_wrong_value_is_named_and_changes_nothing(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ServiceError, match=text):
        register(**changes)
    assert not Change.objects.exists()
    assert not ProtectedApi.objects.exists()


def test_at_most_two_secrets_are_live() -> None:
    api = register().protected_api
    second = issue_api_secret(protected_api=api, **BY).secret
    with pytest.raises(ServiceError, match="has two live secrets"):
        issue_api_secret(protected_api=api, **BY)
    ProtectedApiSecret.objects.filter(pk=second.pk).update(expires_at=AT + timedelta(days=1))
    later = BY | {"at": AT + timedelta(days=2)}
    assert issue_api_secret(protected_api=api, **later).secret.is_live(AT)


def test_an_old_secret_is_retired_and_never_prolonged() -> None:
    first = register(secret_expires_at=AT + timedelta(days=10))
    api, soon = first.protected_api, AT + timedelta(days=3)
    issue_api_secret(protected_api=api, retire_old_at=soon, **BY)
    first.secret.refresh_from_db()
    assert first.secret.expires_at == soon
    assert Change.objects.filter(action="retire_secret").count() == 1
    with pytest.raises(ServiceError):  # both are live
        issue_api_secret(protected_api=api, retire_old_at=AT + timedelta(days=9), **BY)
    first.secret.refresh_from_db()
    assert first.secret.expires_at == soon


def test_a_secret_is_rotated_and_revoked_by_id_or_by_name(api: Api) -> None:
    (old,) = api.registered.credentials.all()
    answer = json_output_of("rotate_protected_api_secret", "Invoicing", "--retire-old=2099-01-01")
    assert [one["secret_hint"] for one in answer["old"]] == [old.hint]
    assert recorded()[0] == "rotate_secret"
    text = output_of("revoke_protected_api_secret", api.client_id, old.hint)
    assert f"It still has …{answer['secret_hint']}." in text
    old.refresh_from_db()
    assert old.revoked_at is not None
    assert (recorded()[0], recorded()[3]["secret_revoked_at"]) == ("revoke_secret", None)
    last = json_output_of("revoke_protected_api_secret", "Invoicing", answer["secret_hint"])
    assert last["live_secrets"] == []
    count = Change.objects.count()
    output_of("revoke_protected_api_secret", "Invoicing", answer["secret_hint"])
    assert Change.objects.count() == count, "safe to repeat"


SECOND = timedelta(seconds=1)


def last_use(api: Api) -> datetime | None:
    return ProtectedApiSecret.objects.get(protected_api=api.registered).last_used_at


def test_a_process_sends_the_first_use_of_each_minute() -> None:
    uses = UsesOfThisMinute()
    assert uses.is_first(1, AT)
    assert not uses.is_first(1, AT + 59 * SECOND)
    assert uses.is_first(2, AT + 59 * SECOND)
    assert uses.is_first(1, AT + 60 * SECOND)
    assert not uses.is_first(1, AT + 61 * SECOND)


def test_the_minute_of_an_introspection_is_stored_with_the_secret_that_asked(api: Api) -> None:
    other = make.api_secret(protected_api=new_api("Archive").registered)
    api.introspect("x", client_secret="cs_test_wrong")
    ProtectedApiSecret.objects.update(revoked_at=AT)
    assert api.introspect("x").status_code == 401
    assert last_use(api) is None, "a wrong secret and one that has ended are no use"
    ProtectedApiSecret.objects.update(revoked_at=None, created_at=AT)
    before = minute_of(datetime.now(UTC))
    assert body_of(api.introspect("x")) == {"active": False}
    stored = last_use(api)
    assert stored is not None
    assert before <= stored <= datetime.now(UTC)
    assert stored == minute_of(stored)
    other.refresh_from_db()
    assert other.last_used_at is None


def test_no_use_lies_before_the_secret_was_made(api: Api) -> None:
    made = datetime.now(UTC)
    ProtectedApiSecret.objects.update(created_at=made)
    api.introspect("x")
    stored = last_use(api)
    assert stored is not None
    assert stored >= made


def test_an_introspection_is_answered_also_if_its_use_cannot_be_stored(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    perform = store.perform

    def without_uses(call: Any) -> Any:
        if isinstance(call, ApiSecretUse):
            raise DatabaseError("cannot write")
        return perform(call)

    monkeypatch.setattr(store, "perform", without_uses)
    answer = api.introspect("x")
    assert body_of(answer) == {"active": False}
    assert last_use(api) is None
    (logged,) = (
        line for line in caplog.records if line.getMessage() == "use of a secret not stored"
    )
    assert getattr(logged, "reference") == answer.headers["correlationId"]  # noqa: B009 - an extra


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_locked_row_makes_no_introspection_wait(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with transaction.atomic():
        ProtectedApiSecret.objects.select_for_update().get(protected_api=api.registered)
        (answer,) = answers_to([asked(api, "x")])
        assert answer.status == 200
        assert last_use(api) is None
    assert "not stored" not in caplog.text  # it was left out, not given up
