"""A bad body is a clear 400, 413, 415 or 422, never a 500, and is not repeated."""

from typing import Any

import pytest

from identity.api.imports.view import MOST_ROWS
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from tests.management_api.portal import Portal, assert_ok, assert_problem, errors_of
from tests.support import make
from tests.support.erp import new_erp
from tests.support.factories import SUBMIT

pytestmark = pytest.mark.django_db

NOT_READABLE: list[tuple[bytes, str]] = [
    (b"{", "it is no JSON (line 1, column 2)"),
    (b"null", "it must be a JSON object"),
    (b"[]", "it must be a JSON object"),
    (b'"text"', "it must be a JSON object"),
    (b'{"name": "a", "name": "b"}', "a field is there twice"),
    (b'{"name": {"a": 1, "a": 2}}', "a field is there twice"),
    (b'{"name": NaN}', "NaN and Infinity are no JSON"),
    (b'{"name": -Infinity}', "NaN and Infinity are no JSON"),
    (b'{"name": ' + b"9" * 5_000 + b"}", "a number has too many digits"),
    (b'{"name": ' + b"[" * 60_000, "it is nested too deeply"),
    (b'{"name": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "it is nested too deeply"),
    (b'{"name": "\\u0000"}', "a text has a NUL"),
    (b'{"na\\u0000me": 1}', "a text has a NUL"),
    (b'{"name": [{"a": "\\ud800"}]}', "half of a surrogate pair"),
    (b'{"name": "\xff"}', "it is not UTF-8"),
    ('{"name": "a"}'.encode("utf-16"), "it is not UTF-8"),
    (b'\xef\xbb\xbf{"name": "a"}', "it is no JSON"),
]


def test_a_body_that_cannot_be_read_is_a_400(portal: Portal) -> None:
    for body, says in NOT_READABLE:
        answer = portal.post("/taxpayers", body)
        detail = assert_problem(answer, 400, "malformed_request")["detail"]
        assert detail.startswith("The body cannot be read: ")
        assert says in detail, body[:40]


def test_the_largest_body_is_read(portal: Portal) -> None:
    frame = b'{"taxpayer": "C2584563222", "name": ""}'
    text = b"a" * (65_536 - len(frame))
    answer = portal.post("/taxpayers", frame[:-2] + text + frame[-2:])
    assert_problem(answer, 422, "invalid_fields")
    answer = portal.post("/taxpayers", frame[:-2] + text + b"a" + frame[-2:])
    assert_problem(answer, 413, "content_too_large", "at most 65536 bytes")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        *(("application/json; charset=utf-8", 201), ("application/merge-patch+json", 415)),
        *(("multipart/form-data; boundary=x", 415), ("application/x-www-form-urlencoded", 415)),
        ("x", 415),
    ],
)
def test_json_is_read_under_each_of_its_names(
    portal: Portal, content_type: str, status: int
) -> None:
    body = {"taxpayer": "C2584563222", "name": "Aminah"}
    answer = portal.post("/taxpayers", body, **{"Content-Type": content_type})
    assert answer.status_code == status
    if "merge-patch" in content_type:  # which is what RFC 7396 is for
        portal.post("/taxpayers", body)
        headers = {"If_Match": "*", "Content-Type": content_type}
        change = {"name": "Bakar", "reason": "x"}
        assert portal.patch("/taxpayers/C2584563222", change, **headers).status_code == 200


MISSING = "This field is required."
NO_STRING = "Not a valid string."
WRONG_FIELDS: list[tuple[Any, dict[str, str]]] = [
    ({}, {"#/taxpayer": MISSING, "#/name": MISSING}),
    (b"", {"#/taxpayer": MISSING, "#/name": MISSING}),
    (
        {"taxpayer": "C1", "nme": "a", "a/b~c d": 1},
        {
            "#/taxpayer": "Write TIN or TIN:ROB: the TIN does not have the form",
            "#/name": MISSING,
            "#/nme": "There is no such field here. Choose from: taxpayer, name.",
            "#/a~1b~0c%20d": "There is no such field here.",
        },
    ),
    ({"taxpayer": None, "name": None}, {"#/taxpayer": "may not be null", "#/name": "null"}),
    ({"taxpayer": ["C1"], "name": {}}, {"#/taxpayer": NO_STRING, "#/name": NO_STRING}),
    ({"taxpayer": "\u0130" * 9, "name": "a"}, {"#/taxpayer": "letters outside A-Z"}),
]


def test_every_field_at_fault_is_named_by_its_pointer(portal: Portal) -> None:
    for body, errors in WRONG_FIELDS:
        found = errors_of(assert_problem(portal.post("/taxpayers", body), 422, "invalid_fields"))
        assert found.keys() == errors.keys(), body
        for pointer, says in errors.items():
            assert says in found[pointer]
    assert not Change.objects.exists()


NEW, WHY = {"taxpayer": "C2584563222", "name": "ERP"}, {"reason": "a test"}
WRONG_VALUES: list[tuple[dict[str, Any], str, str]] = [
    ({"logins_per_minute": "12"}, "#/logins_per_minute", "A valid integer is required."),
    ({"logins_per_minute": 1.5}, "#/logins_per_minute", "A valid integer is required."),
    ({"logins_per_minute": 10**30}, "#/logins_per_minute", "less than or equal to"),
    ({"only_on_behalf": "true"}, "#/only_on_behalf", "Must be a valid boolean."),
    ({"scopes": "InvoicingAPI"}, "#/scopes", "Expected a list of items"),
    ({"scopes": [1]}, "#/scopes/0", NO_STRING),
    ({"scopes": ["a"] * 501}, "#/scopes", "no more than 500 elements"),
    ({"scopes": ["a" * 256]}, "#/scopes/0", "no more than 255 characters"),
    ({"expires_at": "tomorrow"}, "#/expires_at", "Write a day, for example 2027-12-31"),
    ({"expires_at": "0000-01-01"}, "#/expires_at", "Write a day"),
    ({"expires_at": "9999-12-31T23:59:59-23:00"}, "#/expires_at", "Write a day"),
    ({"expires_at": "2027-02-30"}, "#/expires_at", "Write a day"),
    ({"allowed_taxpayers": ["C1000000001", "x y"]}, "#/allowed_taxpayers/1", "Write TIN or"),
    ({"keys": [1]}, "#/keys", "Give a JWK, a JWK Set, or PEM"),
    ({"client_secret": "x"}, "#/client_secret", "There is no such field here."),
]


def test_a_value_of_another_type_is_not_converted(portal: Portal) -> None:
    for fields, pointer, says in WRONG_VALUES:
        answer = portal.post("/system-users", NEW | WHY | fields)
        found = errors_of(assert_problem(answer, 422, "invalid_fields"))
        assert found.keys() == {pointer}, fields
        assert says in found[pointer]


def test_what_only_a_service_knows_has_its_words_its_code_and_its_field(portal: Portal) -> None:
    """Also where the field has another name there, or two; without one it is the whole body."""
    owner = make.taxpayer(tin=NEW["taxpayer"])
    make.intermediary(taxpayer=owner)
    key = {"keys": {"kty": "EC"}}
    past, agent = {"expires_at": "2001-01-01"}, {"allowed_taxpayers": ["C1234567899"]}
    table: list[tuple[str, dict[str, Any], str, str]] = [
        ("/taxpayers", NEW | {"name": "a\nb"}, "unprintable", "#/name"),
        ("/taxpayers", NEW, "already_registered", "#/name"),
        ("/system-users", NEW | WHY | {"taxpayer": "C1234567899"}, "not_registered", "#/taxpayer"),
        ("/system-users", NEW | WHY | agent, "not_registered", "#/allowed_taxpayers"),
        ("/system-users", NEW | WHY | past, "in_the_past", "#/expires_at"),
        (
            "/system-users",
            NEW | WHY | {"credentials_expire_at": "2001-01-01"},
            "in_the_past",
            "#/credentials_expire_at",
        ),
        (
            "/system-users",
            NEW | WHY | {"allowed_networks": ["x"]},
            "invalid_network",
            "#/allowed_networks",
        ),
        ("/system-users", NEW | WHY | key, "invalid_key", "#/keys"),
        ("/system-users", NEW | WHY | {"scopes": ["x"]}, "unknown_value", "#/scopes"),
        *(
            ("/webhooks", {"url": url}, "invalid_url", "#/url")
            for url in ("https://10.1.2.3/", "ftp://x.example/", "https://u:p@x.example/")
        ),
        (
            "/webhooks",
            {"url": "https://x.example/", "event_types": ["nonsense"]},
            "unknown_value",
            "#/event_types",
        ),
    ]
    for path, body, code, pointer in table:
        problem = assert_problem(portal.post(path, body), 422, "change_refused")
        [error] = problem["errors"]
        assert error == {"pointer": pointer, "code": code, "detail": problem["detail"]}, path
    erp = new_erp(taxpayer=owner)
    path = f"/system-users/{erp.client_id}/register-key"
    problem = assert_problem(portal.post(path, key | WHY, If_Match="*"), 422, "change_refused")
    assert [(e["pointer"], e["code"]) for e in problem["errors"]] == [("#", "refused")]


def test_a_secret_in_a_wrong_place_is_not_repeated(portal: Portal) -> None:
    secret = portal.erp.client_secret
    for body in ({secret: 1}, NEW | WHY | {"scopes": [secret]}, NEW | WHY | {"name": secret * 9}):
        answer = portal.post("/system-users", body)
        assert answer.status_code == 422
        assert secret.encode() not in answer.content


FIRST, SECOND, AGENT = "C2584563222", "C2584563223:202001234567", "C9876543210"


def send(portal: Portal, kind: str, *rows: Any, **headers: str) -> Any:
    return portal.post(f"/imports/{kind}", {"rows": list(rows)}, **headers)


def registered(new: int, unchanged: int = 0) -> dict[str, int]:
    return {"registered": new, "unchanged": unchanged}


def imported(portal: Portal, kind: str, row: dict[str, Any]) -> Any:
    answer = send(portal, kind, row)
    assert assert_ok(answer) == registered(1)
    assert assert_ok(send(portal, kind, row)) == registered(0, 1)
    return answer


def test_each_kind_is_imported_and_again_without_a_change(portal: Portal) -> None:
    row: dict[str, Any] = {"taxpayer": SECOND, "name": "Bakar", "is_active": False}
    answer = imported(portal, "taxpayers", row)
    found = Taxpayer.objects.get(tin=SECOND.partition(":")[0])
    assert (str(found.identifier), found.name, found.is_active) == (SECOND, "Bakar", False)
    change = Change.objects.get()
    assert (change.action, str(change.task_id)) == ("import_registry", answer["correlationId"])
    assert change.by == f"{portal.erp.client_id} (client)"
    for tin in (FIRST, AGENT):
        make.taxpayer(tin=tin)
    imported(portal, "intermediaries", {"taxpayer": AGENT, "active_until": "2037-12-31"})
    assert str(Intermediary.objects.get().active_until) == "2037-12-31 15:59:59.999999+00:00"
    dates = {"valid_from": "2036-01-01", "valid_until": "2036-12-31"}
    row = {"taxpayer": FIRST, "intermediary": AGENT, "permissions": [SUBMIT, SUBMIT], **dates}
    imported(portal, "permissions", row)
    granted = GrantedPermission.objects.get()
    assert [code.pk for code in granted.codes.all()] == [SUBMIT]
    assert str(granted.valid_from) == "2035-12-31 16:00:00+00:00"
    assert str(granted.valid_until) == "2036-12-31 15:59:59.999999+00:00"
    row = {"taxpayer": FIRST, "name": "ERP", "scopes": ["InvoicingAPI"], "logins_per_minute": 7}
    imported(portal, "system-users", row)
    user = SystemUser.objects.get(name="ERP")
    assert (user.logins_per_minute, user.scopes, user.credentials.count()) == (7, "InvoicingAPI", 0)
    actions = Change.objects.order_by("pk").values_list("action", flat=True)[1:]
    assert list(actions) == ["register_intermediary", "grant_permission", "register_system_user"]


def test_one_wrong_row_and_nothing_is_imported_and_all_wrong_rows_are_named(portal: Portal) -> None:
    make.taxpayer(tin=FIRST, name="Other name")
    answer = send(
        portal,
        "taxpayers",
        {"taxpayer": "C1111111111", "name": "Right"},
        {"taxpayer": FIRST, "name": "Aminah"},
        {"taxpayer": "C2222222222", "name": " "},
        {"taxpayer": "C1111111111", "name": "Again"},
        {"taxpayer": "!", "name": 1},
    )
    body = assert_problem(answer, 422, "invalid_fields", "4 of 5 rows are bad.")
    assert (errors := errors_of(body)) == {
        "#/rows/1": f"{FIRST} is already registered under the name Other name.",
        "#/rows/2/name": "This field may not be blank.",
        "#/rows/3": "C1111111111 is already in row 0.",
        "#/rows/4/taxpayer": errors["#/rows/4/taxpayer"],
        "#/rows/4/name": "Not a valid string.",
    }
    assert not Change.objects.exists()
    assert not Taxpayer.objects.filter(tin="C1111111111").exists()
    broken: list[Any] = [[0], [{}, "x"], {}, "x", [], None]
    for rows in broken:
        assert_problem(portal.post("/imports/taxpayers", {"rows": rows}), 422, "invalid_fields")
    answer = send(portal, "system-users", {"taxpayer": "C7777777777", "name": "ERP"})
    errors = errors_of(assert_problem(answer, 422, "invalid_fields"))
    assert "There is no taxpayer C7777777777" in errors["#/rows/0/taxpayer"]


def test_an_import_may_be_larger_than_other_bodies_and_not_without_end(portal: Portal) -> None:
    name = "x" * 200
    rows = [{"taxpayer": f"IMP{number:07}", "name": name} for number in range(MOST_ROWS + 1)]
    assert_problem(send(portal, "taxpayers", *rows), 422, "invalid_fields")
    assert assert_ok(send(portal, "taxpayers", *rows[1:])) == registered(MOST_ROWS)
    answer = portal.post("/imports/taxpayers", b" " * 600_000)
    assert_problem(answer, 413, "content_too_large", "at most 524288 bytes")
