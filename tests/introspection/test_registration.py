"""Protected APIs: services, commands, and what the history records of each (contract 2, 3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.credentials import Prefix, fault_of, hash_secret
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.introspection.api import Api
from tests.support.command_line import json_output_of, output_of
from tokens.models import ProtectedApi, ProtectedApiSecret
from tokens.protected_apis.registration import issue_api_secret, register_protected_api

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BY: dict[str, Any] = {"reason": "contract 7", "by": Author("officer"), "at": AT}


def recorded() -> tuple[str, str, str, dict[str, Any], dict[str, Any]]:
    """The newest change."""
    change = Change.objects.latest("pk")
    assert change.object_type == "protectedapi"
    assert change.label == ProtectedApi.objects.get(pk=change.object_id).history_label
    return change.action, change.by, change.reason, change.before, change.after


def register(**changes: Any) -> Any:
    return register_protected_api(
        **{"name": "Invoicing", "audience": "InvoicingAPI", **BY, **changes}
    )


def test_a_registered_api_has_generated_credentials_of_which_only_a_hash_is_stored() -> None:
    issued = register()
    clear = issued.credentials.client_secret
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
