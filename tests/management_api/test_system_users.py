"""System users: register, change, block, rotate; what only staff may change; secrets shown once."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse

from taxpayers.models import Change, SystemUser
from tests.certificates.certificate_erp import certificate
from tests.client_auth.key_erp import new_pair
from tests.management_api.portal import BASE, Portal, assert_ok, assert_problem, new_portal, text_of
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp

pytestmark = pytest.mark.django_db
NEW = {"taxpayer": "C2584563222", "name": "SQL Accounting", "reason": "a test"}


def path_of(erp: Erp) -> str:
    return f"/system-users/{erp.client_id}"


def do(portal: Portal, erp: Erp, task: str, **body: Any) -> HttpResponse:
    path = path_of(erp)
    return portal.post(f"{path}/{task}", {"reason": "a test"} | body, If_Match=portal.etag(path))


@pytest.fixture
def erp(db: None) -> Erp:
    return new_erp(taxpayer__tin="C1000000001", name="Old ERP")


def test_a_system_user_from_its_first_secret_to_its_login(portal: Portal) -> None:
    make.taxpayer(tin="C2584563222")
    answer = portal.post("/system-users", NEW | {"logins_per_minute": 60})
    body = assert_ok(answer, 201)
    issued = body.pop("issued")
    row = SystemUser.objects.get(client_id=body["client_id"])
    secret = row.credentials.get()
    assert body == {
        "client_id": row.client_id,
        "taxpayer": "C2584563222",
        "name": "SQL Accounting",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": 60,
        "expires_at": None,
        "blocked": None,
        "login_method": "client_secret",
        "token_binding": "none",
        "allowed_permissions": [],
        "allowed_taxpayers": [],
        "only_on_behalf": False,
        "return_addresses": [],
        "credentials": [
            {
                "id": secret.pk,
                "kind": "secret",
                "hint": secret.hint,
                "name": "",
                "state": "live",
                "created_at": text_of(secret.created_at),
                "expires_at": text_of(secret.expires_at),
                "revoked_at": None,
                "allowed_networks": [],
            }
        ],
    }
    assert issued == {
        "client_id": row.client_id,
        "client_secret": issued["client_secret"],
        "secret_hint": secret.hint,
        "secret_expires_at": text_of(secret.expires_at),
        "allowed_networks": [],
        "environment": "test",
        "token_endpoint": "http://127.0.0.1:8000/connect/token",
        "note": "Store the client_secret now: it is not shown again, and cannot be read.",
    }
    assert answer["Location"] == f"{BASE}/system-users/{row.client_id}"
    assert answer["ETag"] == portal.etag(f"/system-users/{row.client_id}")
    assert Erp(row.client_id, issued["client_secret"]).login().status_code == 200
    change = Change.objects.latest("pk")
    assert (change.action, change.by) == ("issue_credentials", f"{portal.erp.client_id} (client)")
    assert issued["client_secret"] not in json.dumps([change.before, change.after])


def test_a_change_of_several_fields_is_one_request(portal: Portal, erp: Erp) -> None:
    body = {"name": "New ERP", "logins_per_minute": 0, "reason": "7"}
    path = path_of(erp)
    record = assert_ok(portal.patch(path, body, If_Match=portal.etag(path)))
    assert (record["name"], record["logins_per_minute"]) == ("New ERP", 0)
    assert [change.action for change in Change.objects.all()] == ["change_system_user"]


def test_a_secret_is_rotated_without_downtime(portal: Portal, erp: Erp) -> None:
    end, networks = datetime.now(UTC) + timedelta(days=3), ["127.0.0.0/8"]
    rotate = {"retire_old_at": text_of(end), "allowed_networks": networks}
    body = assert_ok(do(portal, erp, "rotate-secret", **rotate))
    old, new = body["credentials"]
    assert old["expires_at"] == text_of(end)
    assert new["allowed_networks"] == networks
    assert new["hint"] == body["issued"]["secret_hint"]
    renewed = Erp(erp.client_id, body["issued"]["client_secret"], erp.registered)
    assert renewed.login().status_code == erp.login().status_code == 200
    third = do(portal, erp, "rotate-secret")
    assert_problem(third, 422, "change_refused", f"{erp.client_id} has two live secrets")
    listed = assert_ok(portal.get(f"{path_of(erp)}/credentials"))["items"]
    assert [entry["id"] for entry in listed] == [new["id"], old["id"]]
    assert all(entry["last_used_at"] for entry in listed)
    revoked = assert_ok(do(portal, erp, f"credentials/{old['id']}/revoke", reason="replaced"))
    assert [entry["id"] for entry in revoked["credentials"]] == [new["id"]]
    assert erp.login().status_code == 400
    assert renewed.login().status_code == 200


def test_keys_secret_and_certificate_take_turns(portal: Portal, settings: Any) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = "https://mtls.example.org", ["127.0.0.1"]
    make.taxpayer(tin="C2584563222")
    first, second = new_pair("ES256"), new_pair("EdDSA", kid="second")
    created = assert_ok(portal.post("/system-users", NEW | {"keys": first.public_jwk}), 201)
    assert "issued" not in created
    assert created["login_method"] == "private_key_jwt"
    (key,) = created["credentials"]
    assert (key["kind"], key["name"]) == ("key", first.public_jwk["kid"])
    erp = Erp(created["client_id"], "")
    assert_problem(do(portal, erp, "rotate-secret"), 422, "change_refused", "has no secret")
    more = assert_ok(do(portal, erp, "register-key", keys={"keys": [second.public_jwk]}))
    assert [key["kind"] for key in more["credentials"]] == ["key", "key"]
    for task, host, count in (("use", "a", 1), ("register", "b", 2)):
        given = {"certificate": certificate(f"CN={host}").pem}
        given |= {"reason": "x"} if task == "use" else {}
        answer = assert_ok(do(portal, erp, f"{task}-certificate", **given))
        assert [each["kind"] for each in answer["credentials"]] == ["certificate"] * count
    body = assert_ok(do(portal, erp, "use-client-secret", reason="x"))
    assert body["login_method"] == "client_secret"
    erp.client_secret = body["issued"]["client_secret"]
    assert erp.login().status_code == 200
    third = new_pair(kid="third").public_jwk
    keyed = assert_ok(do(portal, erp, "use-private-key", keys=third, reason="x"))
    assert keyed["login_method"] == "private_key_jwt"
    assert erp.login().status_code == 400


def test_who_asks_for_what_only_operators_do_is_told_so(portal: Portal) -> None:
    """Which operations these are: tests/every_address/test_operations.py."""
    answer = do(portal, new_erp(scopes="RegistryAPI:read"), "block")
    assert_problem(answer, 403, "managed_by_operators", "by commands of the operators only")


def test_no_answer_to_a_reader_has_a_secret_or_a_hash(portal: Portal, erp: Erp) -> None:
    secret = erp.system_user.credentials.get()
    reader = new_portal("RegistryAPI:read")
    for path in ("/system-users", path_of(erp), f"{path_of(erp)}/credentials"):
        content = reader.get(path).content.decode()
        assert secret.hint in content
        assert erp.client_secret not in content
        assert secret.lookup not in content


def test_the_history_of_a_system_user_has_its_secrets(portal: Portal, erp: Erp) -> None:
    answer = do(portal, erp, "rotate-secret")
    (change,) = body_of(portal.get(f"{path_of(erp)}/history"))["items"]
    assert change["action"] == "rotate_secret"
    assert change["reference"] == answer["correlationId"]
    assert change["address"] == "127.0.0.1"
