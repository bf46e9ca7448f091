"""Each operation, as OpenAPI names it, with each bad request: the problem that it answers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import drf_spectacular
import jsonschema_rs
import pytest
import schemathesis
from django.db import transaction
from django.http import HttpResponse
from django.utils.timezone import now
from drf_spectacular.drainage import GENERATOR_STATS
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from identity.api.framework.problems import PROBLEMS
from identity.api.openapi import describe
from identity.api.urls import records, urlpatterns
from identity.webhooks.endpoints import send_test
from identity.webhooks.event_types import EVENT_TYPES
from taxpayers.duties import MANAGEMENT_SCOPES
from taxpayers.models import Change
from taxpayers.services import Author
from tests.certificates.certificate_erp import certificate
from tests.client_auth.key_erp import new_pair
from tests.introspection.api import token_of
from tests.management_api.portal import (
    BASE,
    PROBLEM,
    Portal,
    assert_ok,
    assert_problem,
    errors_of,
    new_portal,
    send,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT
from tests.support.outages import database_out_of_reach
from tests.tokens.test_protected_api import MISSING
from tests.webhooks.endpoints import BY, bodies, new_endpoint

pytestmark = pytest.mark.django_db
RULES = Path(drf_spectacular.__file__).parent / "validation" / "openapi_3_1_schema.json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE")
# A right value of each field that an operation needs.
VALUES: dict[str, Any] = {
    **dict.fromkeys(("reason", "name"), "x"),
    "taxpayer": "C2584563222",
    "intermediary": "C9876543210",
    "permissions": [SUBMIT],
    **dict.fromkeys(("valid_until", "active_until", "expires_at"), "2037-12-31"),
    **dict.fromkeys(("allowed_permissions", "allowed_taxpayers", "allowed_networks"), ()),
    "token_binding": "dpop",
    "keys": new_pair().public_jwk,
    "certificate": certificate().pem,
    "url": "https://x.example.org",
}


@dataclass(frozen=True)
class Operation:
    """One of the description; `path` is below the base, with its parameters in braces."""

    method: str
    path: str
    described: dict[str, Any]
    schemas: dict[str, Any]

    def sent(self, place: str) -> set[str]:
        return {one["name"] for one in self.described.get("parameters", ()) if one["in"] == place}

    @property
    def scopes(self) -> list[str]:
        return [scope for one in self.described["security"] for scope in one["accessToken"]]

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.described

    def takes(self, what: str) -> bool:
        return self.has_body if what == "a body" else what in self.sent("header")

    @property
    def body(self) -> Any:
        if not self.has_body:
            return None if self.method == "GET" else {}
        schema, has_rows = self._schema()
        right = {name: VALUES[name] for name in schema.get("required", ())}
        return {"rows": [right]} if has_rows else right

    @property
    def fields(self) -> dict[str, Any]:
        return dict(self._schema()[0]["properties"]) if self.has_body else {}

    def _schema(self) -> tuple[dict[str, Any], bool]:
        """Of its body, or of each row; and whether it has rows."""
        [content] = self.described["requestBody"]["content"].values()
        schema = self._named(content["schema"])
        rows = schema["properties"].get("rows")
        return (self._named(rows["items"]), True) if rows else (schema, False)

    def _named(self, reference: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = self.schemas[reference["$ref"].rpartition("/")[2]]
        return found

    def check(self, answer: HttpResponse) -> None:
        assert answer.status_code != 500, answer.content
        described = self.described["responses"].get(str(answer.status_code))
        assert described, (self.method, self.path, answer.content)
        assert set(described["headers"]) - set(answer.headers) <= {"Location"}
        assert {"ETag", "Location"} & set(answer.headers) <= set(described["headers"])
        if answer.status_code == 204:
            assert not answer.content
            return
        schema = described["content"][answer["Content-Type"]]["schema"]
        rules = {**schema, "components": {"schemas": self.schemas}}
        jsonschema_rs.validator_for(rules, validate_formats=True).validate(body_of(answer))


@pytest.fixture(scope="module")
def description() -> Any:
    return json.loads(send("GET", f"{BASE}/openapi.json", None).content)


@pytest.fixture(scope="module")
def operations(description: Any) -> list[Operation]:
    schemas = description["components"]["schemas"]
    return [
        Operation(method.upper(), path.removeprefix(BASE), described, schemas)
        for path, methods in description["paths"].items()
        for method, described in methods.items()
    ]


@dataclass(frozen=True)
class Api:
    """What is described, a caller, and of each part of a path one that there is."""

    operations: list[Operation]
    portal: Portal
    real: dict[str, Any]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def lists(self) -> list[Operation]:
        return [operation for operation in self if "cursor" in operation.sent("query")]

    def call(self, operation: Operation, **changes: Any) -> HttpResponse:
        """A right request but for these changes: body, query, or headers; None: left out."""
        body, query = changes.pop("body", operation.body), changes.pop("query", "")
        path = operation.path.format(**self.real | changes.pop("path", {}))
        headers = {"If_Match": "*"} if "If-Match" in operation.sent("header") else {}
        headers = {k: v for k, v in {**headers, **changes}.items() if v is not None}
        answer = self.portal.call(operation.method, f"{path}{query}", body, **headers)
        operation.check(answer)
        return answer


@pytest.fixture
def api(portal: Portal, operations: list[Operation]) -> Api:
    granted: Any = make.permission(
        taxpayer__tin=VALUES["taxpayer"],
        taxpayer__name="x",
        intermediary__taxpayer__tin=VALUES["intermediary"],
    )
    by_operator = {"object_type": "taxpayer", "object_id": granted.taxpayer.pk, "before": {}}
    Change.objects.create(by="root", action="rename_taxpayer", at=now(), **by_operator)
    webhook = new_endpoint(by=Author.client(portal.erp.client_id))
    client = new_erp(taxpayer=make.intermediary(taxpayer=granted.taxpayer).taxpayer)
    real = {
        "taxpayer": VALUES["taxpayer"],
        "client_id": client.client_id,
        "permission": granted.pk,
        "permission_request": make.permission_request(
            tin=VALUES["taxpayer"], intermediary=granted.intermediary
        ).pk,
        "credential": client.system_user.credentials.get().pk,
        "webhook": webhook.pk,
        "delivery": send_test(endpoint=webhook, by=BY, at=now())[0].pk,
        "reference": client.login()["correlationId"],
    }
    return Api(operations, portal, real)


def test_an_event_is_as_the_description_says_of_its_type(description: Any, db: None) -> None:
    send_test(endpoint=new_endpoint(), by=BY, at=now())
    (event,) = bodies()
    body = description["webhooks"][event["type"]]["post"]["requestBody"]
    assert body["required"] is True
    rules = body["content"]["application/json"]["schema"] | {
        "components": description["components"]
    }
    jsonschema_rs.validator_for(rules, validate_formats=True).validate(event)
    assert {*EVENT_TYPES, event["type"]} == description["webhooks"].keys()


def test_it_is_valid_openapi_and_was_made_without_a_warning(
    description: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert description["openapi"] == "3.1.0"
    assert description["externalDocs"]["url"] == "http://127.0.0.1:8000/management-api"
    rules = json.loads(RULES.read_text(encoding="utf-8"))
    jsonschema_rs.validator_for(rules).validate(description)
    GENERATOR_STATS.reset()
    describe(records)
    assert not GENERATOR_STATS, capfd.readouterr().err


def test_each_problem_is_described_where_it_can_be_answered_with_its_example(
    description: Any, operations: list[Operation]
) -> None:
    examples, shown = description["components"]["examples"], set()
    for operation in operations:
        answers = operation.described["responses"]
        assert ("409" in answers) is operation.takes("Idempotency-Key")
        sent = operation.described.get("parameters", ())
        needed = [one["name"] for one in sent if one["in"] == "header" and one.get("required")]
        assert needed == (["If-Match"] if "428" in answers else [])
        assert all(one.get("description") for one in sent if one["in"] == "path"), operation.path
        # Other fields are refused.
        assert not operation.has_body or operation._schema()[0]["additionalProperties"] is False
        for status, answer in answers.items():
            named = answer.get("content", {}).get(PROBLEM, {}).get("examples", {})
            assert all(examples[kind]["value"]["status"] == int(status) for kind in named)
            shown |= named.keys()
    assert shown == PROBLEMS.keys()


def test_every_kind_of_problem_has_its_page_without_a_token() -> None:
    for kind, row in PROBLEMS.items():
        body = assert_ok(send("GET", f"{BASE}/problems/{kind}", None))
        assert body == {
            "type": f"http://localhost:8000{BASE}/problems/{kind}",
            "title": row.title,
            "status": row.status,
            "advice": row.advice,
        }
    assert_problem(send("GET", f"{BASE}/problems/x", None), 404, "not_found")


def test_a_right_request_is_done(api: Api) -> None:
    """Or refused by a rule of the registry: so each answer below is that of its one fault."""
    assert {op.method for op in api} == {"GET", "POST", "PATCH"}
    for operation in api:
        key = {"Idempotency_Key": "once"} if operation.takes("Idempotency-Key") else {}
        with transaction.atomic():
            answer = api.call(operation, **key)
            if key:
                answer = api.call(operation, **key)  # the answer of a repeated request
            transaction.set_rollback(True)
        assert answer.status_code < 300 or b"/change_refused" in answer.content, answer.content


def test_without_a_token_or_its_scope_or_a_database_nothing_opens(api: Api, erp: Erp) -> None:
    token, before = token_of(erp), Change.objects.count()
    for operation in api:
        path = f"{BASE}{operation.path.format(**api.real)}"
        challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        answer = send(operation.method, path, None, operation.body)
        problem = assert_problem(answer, 401, "invalid_token", MISSING, **challenge)
        assert (problem["error"], problem["error_description"]) == ("invalid_token", MISSING)
        scope = operation.scopes[0]
        challenge["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{scope}"'
        answer = send(operation.method, path, token, b"{")  # before its body is read
        says = f"needs a token with the scope {scope}."
        assert_problem(answer, 403, "insufficient_scope", says, **challenge)
        with database_out_of_reach():
            answer = api.call(operation)
        assert_problem(answer, 503, "temporarily_unavailable", "Retry-After", Retry_After="5")
        assert b"10.1.2.3" not in answer.content
    assert Change.objects.count() == before


def test_another_method_is_answered_with_those_that_are_allowed(api: Api) -> None:
    for number, path in enumerate({operation.path: None for operation in api}):
        known = {operation.method for operation in api if operation.path == path}
        known |= {"HEAD"} if "GET" in known else set()
        others = sorted(set(METHODS) - known)
        for method in others if number == 0 else others[:1]:  # each has the whole list
            answer = api.portal.call(method, path.format(**api.real))
            says = f"Method '{method}' not allowed."
            assert_problem(answer, 405, "method_not_allowed", says)
            assert set(answer["Allow"].split(", ")) == known, path


# No value of a text, a list, a number and so on; and a moment that could mean several.
ODD: tuple[Any, ...] = ("", " \t", [""], [" "], 0, True, None, "2037-01-01T10:00", "a" * 30_000)


@pytest.mark.long
def test_each_field_takes_what_the_description_says_and_nothing_that_is_empty(api: Api) -> None:
    for operation in (one for one in api if one.fields):
        right, is_import = operation.body, "/imports/" in operation.path
        for name, schema in operation.fields.items():
            place = f"#/rows/0/{name}" if is_import else f"#/{name}"
            whole = {**schema, "components": {"schemas": operation.schemas}}
            rules = jsonschema_rs.validator_for(whole, validate_formats=True)
            for value in ODD:
                body = {**(right["rows"][0] if is_import else right), name: value}
                with transaction.atomic():
                    answer = api.call(operation, body={"rows": [body]} if is_import else body)
                    transaction.set_rollback(True)
                text = value[0] if isinstance(value, list) else value
                is_blank = isinstance(text, str) and not text.strip() and name != "description"
                if rules.is_valid(value) and not is_blank:
                    continue
                assert answer.status_code == 422, (operation.path, name, value, answer.content)
                found = body_of(answer)["errors"]
                assert found[0]["pointer"].startswith(place), (operation.path, found)
                assert found[0]["code"] != "refused", (operation.path, found)


HOSTILE = ["0", "-1", "x", "9" * 18, "9" * 40, "%00", "\u0661", "%C3%A9" * 9, "a" * 5000]
HOSTILE += ["C9999999999", "C2584563222:12345", "C2584563222%3A", "ci_live_x", "cs_test_x"]
HOSTILE += ["ci_test_%00", "ci_test_" * 90, "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f"]


def test_a_record_that_is_not_there_is_a_404(api: Api) -> None:
    for operation in api:
        names = operation.sent("path")
        is_read = operation.method == "GET" and operation.path.endswith("}")
        for name in names:
            for value in HOSTILE if is_read else ["999999"]:
                answer = api.call(operation, path={name: value})
                assert_problem(answer, 404, "not_found", "no such")
    credential = next(op for op in api if op.path.endswith("{credential}/revoke"))
    other = new_erp().system_user.credentials.get().pk
    for number in (other, 0, 10**18, 10**40):
        answer = api.call(credential, path={"credential": number})
        assert_problem(answer, 404, "not_found", "no such secret, key or certificate")


NOT_ONE_ETAG = ["abc", '"abc', 'abc"', '"a" "b"', "*, *", '"a",', 'w/"a"']
NO_KEY = ["", " ", '"', '""', "a b", '"a', "\u00e9", '"a", "b"', "a" * 256, "{}"]
# What is wrong with the headers or the body, which operations take it, and the answer.
FAULTS: list[tuple[str, list[dict[str, Any]], int, str, str]] = [
    ("If-Match", [{"If_Match": None}, {"If_Match": " "}], 428, "precondition_required", "its ETag"),
    ("If-Match", [{"If_Match": t} for t in NOT_ONE_ETAG], 400, "malformed_request", "If-Match mus"),
    ("If-Match", [{"If_Match": '"other"'}], 412, "changed_meanwhile", "Read it again, decide agai"),
    ("Idempotency-Key", [{"Idempotency_Key": k} for k in NO_KEY], 400, "malformed_request", "text"),
    ("a body", [{"Content_Type": "text/plain"}], 415, "unsupported_media_type", "application/json"),
    ("a body", [{"body": b"{"}], 400, "malformed_request", "The body cannot be read: it is no JSO"),
    ("a body", [{"body": b"[" * 600_000}], 413, "content_too_large", "A body has at most"),
    ("a body", [{"body": {"nme": 1}}], 422, "invalid_fields", "Correct the fields listed in error"),
]


@pytest.mark.parametrize(("takes", "faults", "status", "kind", "says"), FAULTS)
def test_a_wrong_header_or_body_is_named_and_nothing_is_changed(
    api: Api, takes: str, faults: list[dict[str, Any]], status: int, kind: str, says: str
) -> None:
    before = Change.objects.count()
    chosen = [op for op in api if op.takes(takes)]
    assert len(chosen) > 20
    for number, operation in enumerate(chosen):
        for fault in faults if number == 0 else faults[:1]:  # one reader reads them for all
            problem = assert_problem(api.call(operation, **fault), status, kind, says)
            if status == 422:
                assert "There is no such field here." in errors_of(problem)["#/nme"]
    assert Change.objects.count() == before


BAD_QUERIES = {
    "?limit=0": ("limit", "greater than or equal to 1"),
    "?limit=501": ("limit", "less than or equal to 500"),
    f"?limit={'9' * 3000}": ("limit", "String value too large."),
    "?limit=1&limit=2": ("limit", "Send it once."),
    "?page=2": ("page", "There is no such field here. Choose from: limit, cursor"),
    "?cursor=abc": ("cursor", "Send the next_cursor of the page before"),
    "?cursor=%00": ("cursor", "Null characters are not allowed."),
}


@pytest.mark.parametrize("query", BAD_QUERIES, ids=map(str, range(len(BAD_QUERIES))))
def test_a_parameter_that_is_wrong_is_named(api: Api, query: str) -> None:
    name, says = BAD_QUERIES[query]
    for operation in api.lists():
        answer = api.call(operation, query=query)
        found = errors_of(assert_problem(answer, 400, "malformed_request"))
        assert found.keys() == {name}
        assert says in found[name]


@pytest.mark.parametrize("query", ["?a=%zz", "?a=%ff", "?" + "&".join(["a=1"] * 101)])
def test_a_query_that_cannot_be_read_is_refused(portal: Portal, query: str) -> None:
    answer = portal.get(f"/taxpayers{query}")
    assert_problem(answer, 400, "malformed_request", "The request is malformed: the query string")


def test_a_cursor_is_taken_only_by_its_own_list(api: Api) -> None:
    """Also where two lists have the same order: a place of one means nothing in the other."""
    make.taxpayer()
    new_erp().login()
    make.permission()
    new_endpoint(by=Author.client(api.portal.erp.client_id))
    cursors = {}
    for operation in api.lists():
        page = assert_ok(api.call(operation, query="?limit=1"))
        if cursor := page["next_cursor"]:
            cursors[operation.path] = cursor
    assert len(cursors) >= 7
    for operation in api.lists():
        for path, cursor in cursors.items():
            answer = api.call(operation, query=f"?cursor={cursor}")
            if path == operation.path:
                assert assert_ok(answer)["items"]
            else:
                found = errors_of(assert_problem(answer, 400, "malformed_request"))
                assert found.keys() == {"cursor"}, (path, operation.path)


@pytest.mark.parametrize(
    "path", ["", "/", "/taxpayers/", "/Taxpayers", "/taxpayers/C1000000001/nonsense", "/users/1/2"]
)
def test_a_path_that_is_not_there_is_a_404(path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = send(method, f"{BASE}{path}", None, {} if method == "POST" else None)
        assert_problem(answer, 404, "not_found", "There is nothing at this path.", Allow="")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what the schema describes
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_whatever_is_sent_the_answer_is_one_of_the_description(
    api: Api, description: Any, mode: GenerationMode
) -> None:
    """5,000 requests."""
    statuses: set[int] = set()
    made = schemathesis.openapi.from_dict(description).get_all_operations()
    for found, operation in zip(made, api, strict=True):
        case_of: Any = found.ok()  # type: ignore[union-attr]
        if mode == GenerationMode.NEGATIVE and not (case_of.body or case_of.query):
            continue  # nothing of it can be wrong but the path

        @settings(
            max_examples=60,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=case_of.as_strategy(generation_mode=mode))
        def check(case: Any, operation: Operation) -> None:
            sent = case.as_transport_kwargs(base_url="http://localhost:8000")
            body = sent.get("json", sent.get("data"))
            query = f"?{urlencode(case.query, doseq=True)}" if case.query else ""
            statuses.add(api.call(operation, body=body, query=query).status_code)

        check(operation=operation)
    assert statuses >= ({200} if mode == GenerationMode.POSITIVE else {400, 422})


# What each scope changes, and what else it reads: the beginning of addresses.
CONNECT = tuple(
    f"permission-requests/{{permission_request}}/{name}-connection"
    for name in ("approve", "decline")
)
CHANGES: dict[str, tuple[str, ...]] = {
    "RegistryAPI": ("",),
    "RegistryAPI:read": (),
    "RegistryAPI:taxpayers": (
        *("taxpayers", "intermediaries", "imports/taxpayers", "imports/intermediaries"),
    ),
    "RegistryAPI:permissions": ("permissions", "permission-requests", "imports/permissions"),
    "RegistryAPI:credentials": (*CONNECT, "system-users", "imports/system-users"),
    "RegistryAPI:webhooks": ("webhooks",),
}
ALSO_READS: dict[str, tuple[str, ...]] = {
    "RegistryAPI:read": ("",),
    "RegistryAPI:permissions": ("taxpayers", "intermediaries", "permission-codes"),
    "RegistryAPI:credentials": (
        *("taxpayers", "permission-codes", "logins", "permission-requests"),
    ),
    "RegistryAPI:webhooks": ("changes",),
}


@pytest.mark.parametrize("scope", sorted(MANAGEMENT_SCOPES))
def test_each_scope_opens_its_addresses_and_no_other(scope: str, api: Api) -> None:
    before, api = Change.objects.count(), replace(api, portal=new_portal(scope))
    for operation in api:
        reads = ALSO_READS.get(scope, ()) if operation.method == "GET" else ()
        is_other = operation.path[1:] in CONNECT and scope == "RegistryAPI:permissions"
        if operation.path[1:].startswith(CHANGES[scope] + reads) and not is_other:
            # A change is refused only for its body.
            answer = api.call(operation, body=None if operation.method == "GET" else b"{")
            assert answer.status_code in (200, 400, 404), (operation.path, answer.content)
        else:
            answer = api.call(operation)
            says = f"Log in with scope={operation.scopes[0]}."
            lacks = f'Bearer error="insufficient_scope", scope="{operation.scopes[0]}"'
            assert_problem(answer, 403, "insufficient_scope", says, WWW_Authenticate=lacks)
    assert Change.objects.count() == before


def test_what_is_public_is_decided() -> None:
    own = {str(path.pattern).removeprefix(BASE[1:]) for path in urlpatterns if path not in records}
    assert own == {"/openapi.json", "/problems/<str:kind>", "", "/", "/<path:rest>"}
