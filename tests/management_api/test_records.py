"""Records of the management API: each kind read, listed, changed; what is shown once."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse

from identity.api.events import changes
from taxpayers import actions
from taxpayers.models import Change, GrantedPermission, SystemUser, Taxpayer
from taxpayers.services import Author, rename_taxpayer
from taxpayers.services.feed import chain
from taxpayers.services.history import ChangeContext, record_export
from tests.client_auth.key_erp import new_pair
from tests.management_api.portal import (
    BASE,
    Portal,
    assert_ok,
    assert_problem,
    errors_of,
    new_portal,
    text_of,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
AGENT, CLIENT, OTHER = "C9876543210", "C2584563222", "C1000000001:12345"


def test_a_taxpayer_is_registered(portal: Portal) -> None:
    new = {"taxpayer": "c2584563222:202001234567", "name": "Kedai Runcit Aminah"}
    answer = portal.post("/taxpayers", new)
    record = assert_ok(answer, 201)
    row = Taxpayer.objects.get(tin="C2584563222")
    assert record == {
        "taxpayer": "C2584563222:202001234567",
        "tin": "C2584563222",
        "rob": "202001234567",
        "name": "Kedai Runcit Aminah",
        "is_active": True,
        "registered_at": text_of(row.created_at),
    }
    assert answer["Location"] == f"{BASE}/taxpayers/C2584563222:202001234567"
    read = portal.get("/taxpayers/C2584563222:202001234567")
    assert assert_ok(read) == record
    assert read["ETag"] == answer["ETag"]
    change = Change.objects.latest("pk")
    assert (change.by, change.action) == (f"{portal.erp.client_id} (client)", "register_taxpayer")
    assert str(change.task_id) == answer["correlationId"]
    assert change.address == "127.0.0.1"


def test_the_history_of_a_taxpayer_has_pages(portal: Portal) -> None:
    path = f"/taxpayers/{make.taxpayer(tin=CLIENT).tin}"
    for name in ("First", "Second"):
        body = {"name": name, "reason": f"because {name}"}
        changed = portal.patch(path, body, If_Match=portal.etag(path))
        assert assert_ok(changed)["name"] == name
        assert changed["ETag"] == portal.etag(path)
    second, first = assert_ok(portal.get(f"{path}/history"))["items"]
    assert (first["after"], second["after"]) == ({"name": "First"}, {"name": "Second"})
    assert (second["before"], second["reason"]) == ({"name": "First"}, "because Second")
    assert second["by"] == f"{portal.erp.client_id} (client)"
    newest = body_of(portal.get(f"{path}/history?limit=1"))
    assert newest["items"] == [second]
    older = body_of(portal.get(f"{path}/history?cursor={newest['next_cursor']}"))
    assert older == {"items": [first], "next_cursor": None}
    since = body_of(portal.get(f"{path}/history?since={second['at']}"))
    assert since["items"] == [second]
    assert body_of(portal.get(f"/taxpayers/{portal.erp.tin}/history"))["items"] == []


def test_a_permission_is_granted_extended_shortened_and_revoked(portal: Portal) -> None:
    make.taxpayer(tin=CLIENT)
    make.intermediary(taxpayer__tin=AGENT)
    body = {
        "taxpayer": CLIENT,
        "intermediary": AGENT,
        "permissions": [SUBMIT],
        "valid_until": "2036-12-31",
    }
    answer = portal.post("/permissions", body)
    record = assert_ok(answer, 201)
    row = GrantedPermission.objects.get()
    assert record == {
        "id": row.pk,
        "taxpayer": CLIENT,
        "intermediary": AGENT,
        "permissions": [SUBMIT],
        "state": "in_force",
        "valid_from": text_of(row.valid_from),
        "valid_until": "2036-12-31T15:59:59.999999Z",
        "revoked_at": None,
        "granted_at": text_of(row.created_at),
        "evidence": {"kind": "entered_before"},
    }
    path = f"/permissions/{row.pk}"
    end = {"valid_until": "2037-12-31", "reason": "x"}
    extended = portal.post(f"{path}/extend", end, If_Match=answer["ETag"])
    assert assert_ok(extended)["valid_until"] == "2037-12-31T15:59:59.999999Z"
    again = portal.post(f"{path}/extend", end, If_Match=extended["ETag"])
    assert_problem(again, 422, "change_refused", "is not later")
    end = {"valid_until": "2035-12-31", "reason": "x"}
    earlier = portal.post(f"{path}/end-earlier", end, If_Match=extended["ETag"])
    assert assert_ok(earlier)["valid_until"] == "2035-12-31T15:59:59.999999Z"
    revoked = portal.post(f"{path}/revoke", {"reason": "x"}, If_Match=earlier["ETag"])
    assert assert_ok(revoked)["state"] == "revoked"
    actions = [change["action"] for change in body_of(portal.get(f"{path}/history"))["items"]]
    assert actions == ["revoke_permission", *["extend_permission"] * 2, "grant_permission"]


def test_a_permission_has_a_state(portal: Portal) -> None:
    at = datetime.now(UTC)
    for state, moments in {
        "in_force": {},
        "not_yet_valid": {"valid_from": at + DAY},
        "expired": {"valid_from": at - 2 * DAY, "valid_until": at - DAY},
        "revoked": {"revoked_at": at - DAY},
    }.items():
        row = make.permission(**moments)
        assert assert_ok(portal.get(f"/permissions/{row.pk}"))["state"] == state


def test_a_login_is_explained(portal: Portal) -> None:
    agent = new_erp(taxpayer=make.intermediary(taxpayer__tin=AGENT).taxpayer)
    reference = agent.login(on_behalf_of=CLIENT)["correlationId"]
    body = assert_ok(portal.get(f"/logins/{reference}"))
    assert body["login"]["reference"] == reference
    assert body["login"]["outcome"] == "no_permission"
    assert body["login"]["is_authenticated"] is True
    assert (body["login"]["taxpayer"], body["login"]["intermediary"]) == (CLIENT, AGENT)
    assert body["help"] == "http://127.0.0.1:8000/errors/no_permission"
    assert "the login was refused" in body["explanation"]
    assert {"passed", "failed"} <= {check["state"] for check in body["checks"]}
    assert agent.client_secret not in str(body)


FEED = "/changes"


def read_all(portal: Portal, after: str = "") -> tuple[list[dict[str, str]], str]:
    """All pages behind this place, and the last place."""
    items, has_more = [], True
    while has_more:
        page = assert_ok(portal.get(f"{FEED}?limit=2&after={after}"))
        assert len(page["items"]) <= 2
        items += page["items"]
        after, has_more = page["next_after"], page["has_more"]
    return items, after


def test_every_change_comes_once_in_its_order(portal: Portal) -> None:
    taxpayer = make.taxpayer(tin="C2584563222")
    path = f"/taxpayers/{taxpayer.identifier}"
    for number in range(5):
        portal.patch(path, {"name": f"N{number}", "reason": "x"}, If_Match="*")
    answer = portal.post(f"{path}/deactivate", {"reason": "secret reason"}, If_Match="*")
    items, after = read_all(portal)
    assert [item["action"] for item in items] == ["rename_taxpayer"] * 5 + ["deactivate_taxpayer"]
    last = Change.objects.get(action="deactivate_taxpayer")
    assert items[-1] == {
        "at": last.at.isoformat().replace("+00:00", "Z"),
        "kind": "taxpayer",
        "id": "C2584563222",
        "path": "/api/v1/management/taxpayers/C2584563222",
        "action": "deactivate_taxpayer",
        "event_type": "taxpayer.deactivated",
        "reference": answer["correlationId"],
    }
    assert read_all(portal, after) == ([], after)
    portal.post(f"{path}/activate", {"reason": "x"}, If_Match="*")
    more, _after = read_all(portal, after)
    assert [item["action"] for item in more] == ["activate_taxpayer"]


def test_changes_that_are_no_business_of_the_portal_are_left_out(portal: Portal) -> None:
    """The taxpayer is not there, and an export is about no record: neither stops a reader."""
    context = ChangeContext(actions.EXPORT_REGISTRY, Author("auditor"), datetime.now(UTC))
    for kind in ("staffaccount", "protectedapi", "signingkey", "taxpayer"):
        about = {"object_type": kind, "object_id": "999999"}
        Change.objects.create(at=context.at, by="x", action="x", **about)
    record_export(Taxpayer, context, filters="", form="csv")
    assert read_all(portal)[0] == []
    rename_taxpayer(taxpayer=make.taxpayer(), name="New", reason="x", by=context.by, at=context.at)
    items, after = read_all(portal)
    assert [item["action"] for item in items] == ["rename_taxpayer"]
    assert after.startswith("6-")


def test_what_is_no_place_or_was_one_before_a_restore_is_refused(portal: Portal) -> None:
    make.taxpayer(tin="C2584563222")
    portal.patch("/taxpayers/C2584563222", {"name": "N", "reason": "x"}, If_Match="*")
    _items, former = read_all(portal)
    Change.objects.update(at=Change.objects.get().at.replace(year=2020))
    for after in ("x", "0-0", "1", "1-", "-1-0", "1-zz", "9-1", "\u0661-1", former):
        body = assert_problem(portal.get(f"{FEED}?after={after}"), 400, "malformed_request")
        assert "begin again" in errors_of(body)["after"], after


def test_a_page_that_publishes_much_goes_on_next_time(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "BATCH", 1)
    monkeypatch.setattr(changes, "_MOST_PUBLISHED", 2)
    taxpayer = make.taxpayer()
    for number in range(5):
        at = Change._meta.get_field("at").get_default()
        rename_taxpayer(taxpayer=taxpayer, name=f"N{number}", reason="x", by=Author("x"), at=at)
    after, counts = "", []
    for _ in range(3):
        page = assert_ok(portal.get(f"{FEED}?after={after}"))
        counts.append(len(page["items"]))
        after = page["next_after"]
        assert page["has_more"] is (counts != [2, 2, 1])
    assert counts == [2, 2, 1]


def found(portal: Portal, path: str, name: str) -> list[Any]:
    return [item[name] for item in assert_ok(portal.get(path))["items"]]


@pytest.fixture
def registry(portal: Portal) -> dict[str, Any]:
    """An intermediary that acts for one taxpayer, another pair, and three logins."""
    role: Any = make.intermediary(taxpayer__tin=AGENT, taxpayer__name="Hub")
    client: Any = make.taxpayer(tin=CLIENT, name="Ali Trading")
    make.taxpayer(tin="C1000000001", rob="12345", name="Bakar Trading")
    make.taxpayer(tin="C1000000001", name="Bakar & Sons", is_active=False)
    granted = [make.permission(taxpayer=client, intermediary=role) for _ in "12"]
    other: Any = make.permission(taxpayer__name="A", intermediary__taxpayer__name="B")
    yesterday = datetime.now(UTC) - DAY
    stolen = {"name": "Stolen", "blocked_at": yesterday}
    new_erp(taxpayer__tin="C3000000003", taxpayer__name="C", **stolen)
    agent = new_erp(taxpayer=role.taxpayer, name="Old ERP")
    answers = [agent.login(on_behalf_of=tin) for tin in (CLIENT, "C1111111111", None)]
    return {
        **dict(zip("ABC", (answer["correlationId"] for answer in answers), strict=True)),
        "agent": agent.client_id,
        "granted": [row.pk for row in granted],
        "other": other.pk,
        "tomorrow": text_of(datetime.now(UTC) + DAY),
        "yesterday": text_of(yesterday),
    }


def test_each_filter_leaves_what_it_names(portal: Portal, registry: dict[str, Any]) -> None:
    """`#` in a query: of the intermediary's client; the letters: its logins, the newest first."""
    granted, other = registry["granted"], registry["other"]
    table: dict[str, dict[str, list[Any]]] = {
        "taxpayers taxpayer": {
            "?tin=c1000000001": ["C1000000001", OTHER],
            "?name=trading": [OTHER, CLIENT],
            "?name=trad+bak": [OTHER],
            "?state=inactive": ["C1000000001"],
            "?state=active&name=bakar&limit=1&cursor=": [OTHER],
            "?name=unknown": [],
        },
        "system-users name": {
            "?client_id=#": ["Old ERP"],
            f"?taxpayer={AGENT.lower()}": ["Old ERP"],
            "?taxpayer=C9999999999": [],
            "?name=old": ["Old ERP"],
            "?state=blocked": ["Stolen"],
        },
        "intermediaries taxpayer": {f"?tin={AGENT}": [AGENT]},
        "permissions id": {
            "": [*granted, other],
            f"?intermediary={AGENT}": granted,
            f"?taxpayer={CLIENT}&limit=1": granted[:1],
            f"?taxpayer={OTHER}&intermediary={AGENT}": [],
            "?taxpayer=C1111111111": [],
        },
        "logins reference": {
            "?client_id=#": ["C", "B", "A"],
            f"?taxpayer={CLIENT}": ["A"],
            f"?intermediary={AGENT}": ["B", "A"],
            "?outcome=no_permission": ["B"],
            f"?since={registry['tomorrow']}": [],
            f"?client_id=#&since={registry['yesterday']}&limit=2": ["C", "B"],
        },
    }
    for place, queries in table.items():
        path, name = place.split()
        for query, expected in queries.items():
            asked = f"/{path}{query.replace('#', registry['agent'])}"
            right = [registry.get(value, value) for value in expected]
            assert found(portal, asked, name) == right, asked
    assert len(found(portal, "/intermediaries", "taxpayer")) == 2
    codes = found(portal, "/permission-codes?limit=500", "code")
    assert {SUBMIT, VIEW} <= set(codes)
    assert codes == sorted(codes)


def test_logins_are_found_by_one_thing_at_a_time(portal: Portal) -> None:
    both = portal.get(f"/logins?client_id=x&taxpayer={CLIENT}")
    assert_problem(both, 400, "malformed_request", "Filter by one of client_id, taxpayer")
    wrong = errors_of(body_of(portal.get("/logins?since=yesterday&taxpayer=x")))
    assert wrong.keys() == {"since", "taxpayer"}
    wrong = errors_of(body_of(portal.get("/logins?outcome=foo")))
    assert "invalid_credentials" in wrong["outcome"], "it names the choices"


def test_pages_have_each_record_once_whatever_changes_between_them(portal: Portal) -> None:
    for n in range(9):
        make.taxpayer(tin=f"D100000000{n}", rob="" if n % 2 else "12345")
    whole = found(portal, "/taxpayers", "taxpayer")
    assert sorted(whole) == whole
    assert len(whole) == 10
    for limit in (1, 3, 9, 10):
        collected: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = body_of(portal.get(f"/taxpayers?limit={limit}&cursor={cursor}"))
            assert len(page["items"]) <= limit
            collected += [item["taxpayer"] for item in page["items"]]
            assert len(collected) <= len(whole)
            cursor = page["next_cursor"]
        assert collected == whole
    page = body_of(portal.get("/taxpayers?limit=4"))
    last = page["items"][-1]["taxpayer"]
    Taxpayer.objects.get(tin=last.partition(":")[0]).delete()
    make.taxpayer(tin="A0000000000")
    rest = found(portal, f"/taxpayers?cursor={page['next_cursor']}", "taxpayer")
    assert rest == whole[whole.index(last) + 1 :]


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
    answer = do(portal, erp, "rotate-secret", **rotate)
    body = assert_ok(answer)
    change, _retired = body_of(portal.get(f"{path_of(erp)}/history"))["items"]
    assert (change["action"], change["reference"]) == ("rotate_secret", answer["correlationId"])
    assert change["address"] == "127.0.0.1"
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


def test_a_client_without_a_secret_gets_one(portal: Portal) -> None:
    """Each change of the login method by this door: tests/every_address/test_operations.py."""
    make.taxpayer(tin="C2584563222")
    first = new_pair("ES256")
    created = assert_ok(portal.post("/system-users", NEW | {"keys": first.public_jwk}), 201)
    assert "issued" not in created
    assert created["login_method"] == "private_key_jwt"
    (key,) = created["credentials"]
    assert (key["kind"], key["name"]) == ("key", first.public_jwk["kid"])
    erp = Erp(created["client_id"], "")
    assert_problem(do(portal, erp, "rotate-secret"), 422, "change_refused", "has no secret")
    body = assert_ok(do(portal, erp, "use-client-secret"))
    assert body["login_method"] == "client_secret"
    erp.client_secret = body["issued"]["client_secret"]
    assert erp.login().status_code == 200


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
