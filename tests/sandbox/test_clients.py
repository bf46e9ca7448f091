"""The clients of the sandbox: each behaves, and warns, as its list says."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from django.utils.html import escape

from identity.sandbox.catalogue import BY_REQUEST, CLIENTS, TOKEN, SandboxClient
from identity.sandbox.listing import sandbox_as_json
from identity.sandbox.registry import make_sandbox, renew_ending_secret, renew_once
from taxpayers.credentials import Prefix, fault_of, hash_secret
from taxpayers.facts.query import load_facts
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.values import FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, SystemUser
from taxpayers.rules import AuthorizationRequest, Refused, RegistryReason, decide
from taxpayers.sandbox.clients import (
    CREDENTIALS,
    NAMES,
    SANDBOX_CLIENT_IDS,
    SandboxName,
    sandbox_name,
)
from taxpayers.services import Author, ServiceError
from taxpayers.services.sandbox.clients import (
    move_sandbox_secret_end,
    register_sandbox_client,
    reset_sandbox_counter,
)
from tests.endpoint.test_event_loop import login_of
from tests.servers.service import manage, service_environment
from tests.staff.test_lists import act_on
from tests.support import make
from tests.support.command_line import json_output_of
from tests.support.erp import FORM, PATH, Erp, assert_unavailable, new_erp
from tests.support.staff import staff_client
from tests.wire.test_answers import Send, both, committed
from tokens.checks import check_settings
from tokens.models import LoginEvent
from tokens.operations import sandbox as addresses
from tokens.operations.login import log_in
from tokens.operations.paths import Operation, report_login, with_warnings
from tokens.operations.sandbox import log_in_with_sandbox
from tokens.operations.view import answer_by
from tokens.rate_limits.backoff import PAIR_BACKOFF, Backoff
from tokens.refusals.table import REFUSALS
from tokens.system_warnings import HEADER, faults_of

BY_NAME = {client.name: client for client in CLIENTS}

BY = Author("officer")


@pytest.fixture
def sandbox(db: None) -> None:
    make_sandbox(timezone.now())


def erp_of(name: str) -> Erp:
    credentials = CREDENTIALS[name]
    return Erp(credentials.client_id, credentials.client_secret)


def log_in_as(client: SandboxClient, **form: Any) -> HttpResponse:
    sent = client.on_behalf_of or None
    return erp_of(client.name).login(on_behalf_of=sent, **form)


def reset(name: str, **form: str) -> Any:
    return Client().post("/sandbox/reset", erp_of(name).credentials | form)


# --- What each client gets ------------------------------------------------------------------------


@committed
@both
def test_each_client_gets_what_its_list_says(send: Send) -> None:
    make_sandbox(timezone.now())
    for client in 2 * CLIENTS:  # the second time from what the node remembers
        sent = login_of(erp_of(client.name))
        headers = {"onbehalfof": client.on_behalf_of} if client.on_behalf_of else {}
        answer = send(replace(sent, headers=headers))
        body = json.loads(answer.body)
        if client.gets != TOKEN:
            refusal = REFUSALS[client.gets]
            assert (answer.status, body["error"]) == (refusal.status, refusal.error), client.name
            assert f"/errors/{client.gets}>" in answer.headers["Link"]
        elif client.name != SandboxName.ONE_LOGIN_A_MINUTE:
            lifetime = 60 if client.name == SandboxName.TOKEN_FOR_A_MINUTE else 3600
            assert (answer.status, body["expires_in"]) == (200, lifetime), client.name


def test_a_client_that_always_fails_never_has_to_wait(sandbox: None) -> None:
    for _ in range(PAIR_BACKOFF.free + 2):
        answer = log_in_as(BY_NAME[RegistryReason.SECRET_EXPIRED])
        assert (answer.status_code, answer.reason_phrase) == (400, "invalid_client")


def test_a_503_is_answered_as_a_real_one_and_leaves_no_record(sandbox: None) -> None:
    assert_unavailable(log_in_as(BY_NAME[SandboxName.TEMPORARILY_UNAVAILABLE]))
    assert not LoginEvent.objects.exists()


def test_a_wrong_secret_gets_no_special_answer(sandbox: None) -> None:
    other = CREDENTIALS[SandboxName.WORKS].client_secret
    for name in (
        *(SandboxName.TEMPORARILY_UNAVAILABLE, SandboxName.SERVER_ERROR),
        *(SandboxName.RATE_LIMITED, SandboxName.TOKEN_FOR_A_MINUTE),
    ):
        answer = Erp(CREDENTIALS[name].client_id, other).login()
        assert answer.status_code == 400
        assert "/errors/invalid_credentials>" in answer["Link"]


# --- Time -----------------------------------------------------------------------------------------


def test_the_secret_that_ends_tomorrow_does_so_on_every_day(sandbox: None) -> None:
    for days in (0, 1, 2, 40):
        at = timezone.now() + timedelta(days=days)
        renew_ending_secret(at)
        client_id = CREDENTIALS[SandboxName.SECRET_ENDS_TOMORROW].client_id
        secret = SystemUser.objects.get(client_id=client_id).credentials.get()
        end = timezone.localtime(secret.expires_at)
        assert end.date() == timezone.localtime(at).date() + timedelta(days=1)
        assert f"{end:%H:%M:%S}" == "23:59:59"


def test_the_server_renews_it(sandbox: None) -> None:
    now = timezone.now()
    move_sandbox_secret_end(name=SandboxName.SECRET_ENDS_TOMORROW, last_moment=now, by=BY, at=now)
    assert log_in_as(BY_NAME[SandboxName.SECRET_ENDS_TOMORROW]).status_code == 400
    renew_once()
    answer = log_in_as(BY_NAME[SandboxName.SECRET_ENDS_TOMORROW])
    assert answer.status_code == 200
    end = datetime.fromisoformat(answer["X-Client-Secret-Expires-At"])
    assert timedelta(0) < end - now < timedelta(days=2)


def test_time_alone_changes_no_other_client(sandbox: None) -> None:
    later = timezone.now() + timedelta(days=365 * 20)
    renew_ending_secret(later)
    assert [client.name for client in CLIENTS if not is_still_right(client, later)] == []


def is_still_right(client: SandboxClient, at: datetime) -> bool:
    """By the registry: what no state of it can do is done for a client that would get a token."""
    represented = TaxpayerId(client.on_behalf_of) if client.on_behalf_of else None
    lookup = hash_secret(client.credentials.client_secret)
    facts = load_facts(FactsQuery(client.credentials.client_id, lookup, represented)).facts
    assert facts is not None
    source = LoginSource("203.0.113.1")
    try:
        decide(AuthorizationRequest(facts, None, tuple(settings.SCOPES), at, source=source))
    except Refused as refused:
        return refused.reason == client.gets
    return client.gets not in set(RegistryReason)


# --- Limits ---------------------------------------------------------------------------------------


def test_the_limit_of_one_a_minute_is_met_and_reset_by_a_call(sandbox: None) -> None:
    client = BY_NAME[SandboxName.ONE_LOGIN_A_MINUTE]
    for _ in range(3):
        answer = log_in_as(client)
        assert answer.status_code == 200
        assert (answer["X-Rate-Limit-Limit"], answer["X-Rate-Limit-Remaining"]) == ("1", "0")
        assert log_in_as(client).status_code == 429
        done = reset(client.name)
        assert done.status_code == 200
        own = {"client_id": client.credentials.client_id, "name": "one_login_a_minute"}
        assert done.json() == {**own, "logins": 0}


def test_no_other_client_resets_its_counter(sandbox: None) -> None:
    other_secret = CREDENTIALS[RegistryReason.SYSTEM_USER_BLOCKED].client_secret
    assert reset(SandboxName.WORKS, client_secret=other_secret).status_code == 400
    erp = new_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    answer = Client().post("/sandbox/reset", erp.credentials)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client")
    assert erp.login().status_code == 429


# --- The list -------------------------------------------------------------------------------------


def test_there_is_a_client_or_a_request_for_each_reason() -> None:
    refused = [client.gets for client in CLIENTS if client.gets != TOKEN]
    assert sorted([*refused, *BY_REQUEST]) == sorted(REFUSALS)
    assert [client.name for client in CLIENTS if client.gets == client.name] == refused
    assert {client.name for client in CLIENTS} == set(NAMES)


def test_ids_and_secrets_have_the_form_of_this_environment_and_no_live_one_takes_them() -> None:
    for name, credentials in CREDENTIALS.items():
        for text, kind in (
            (credentials.client_id, Prefix.CLIENT_ID),
            (credentials.client_secret, Prefix.CLIENT_SECRET),
        ):
            assert fault_of(text, kind, "test") is None
            assert fault_of(text, kind, "live") == "other_environment"
        assert sandbox_name(credentials.client_id) == name
    assert len({c.client_id for c in CREDENTIALS.values()}) == len(NAMES)
    assert len({c.client_secret for c in CREDENTIALS.values()}) == len(NAMES)


def test_the_page_and_its_json_show_every_client_and_query_nothing() -> None:
    page = Client().get("/en/sandbox")
    data = Client().get("/sandbox.json")
    assert (page.status_code, data.status_code) == (200, 200)
    assert data.json() == json.loads(json.dumps(sandbox_as_json()))
    html = page.content.decode()
    for client in CLIENTS:
        assert client.credentials.client_secret in html
        assert escape(str(client.does)) in html
    for reason in BY_REQUEST:
        assert f'href="/en/errors/{reason}"' in html
    assert Client().get("/sandbox", headers={"Accept-Language": "ms"})["Content-Language"] == "ms"


def test_the_command_makes_what_is_missing_and_lists_all(db: None) -> None:
    first = json_output_of("sandbox")
    assert first["created"] == [client.name for client in CLIENTS]
    changes = Change.objects.count()
    second = json_output_of("sandbox")
    assert second["created"] == []
    assert Change.objects.count() == changes
    assert second["clients"] == first["clients"]


# --- It cannot be broken, and is in test only ----------------------------------------------


@pytest.mark.parametrize("task", ["block_system_user", "extend_system_user", "revoke_secrets"])
def test_a_task_for_many_system_users_leaves_clients_of_the_sandbox_as_they_are(
    task: str, sandbox: None
) -> None:
    rows = SystemUser.objects.filter(client_id__in=SANDBOX_CLIENT_IDS)
    page = act_on(staff_client("security officer"), SystemUser, task, [*rows])
    assert {preview.refusal for _row, preview in page.context["plan"]} == {
        "A client of the sandbox: everybody has its secret. Do not change it."
    }
    assert page.context["count"] == 0


def test_a_public_secret_cannot_be_revoked(sandbox: None) -> None:
    token = json.loads(log_in_as(BY_NAME[SandboxName.WORKS]).content)["access_token"]
    answer = Client().delete(
        "/api/v1/credentials/current?revoke_last=true", headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 409
    assert "sandbox" in answer.json()["error_description"]
    assert log_in_as(BY_NAME[SandboxName.WORKS]).status_code == 200


def test_an_address_that_uses_it_too_often_has_to_wait_and_writes_nothing(
    sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "SANDBOX_BACKOFF", Backoff(free=3, cap_seconds=64))
    answers = [log_in_as(BY_NAME[SandboxName.WORKS]) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
    assert int(answers[-1]["Retry-After"]) >= 1
    assert LoginEvent.objects.count() == 4
    assert new_erp().login().status_code == 200  # who is not of the sandbox is not concerned


def test_the_services_of_the_sandbox_refuse_a_live_service(db: None, settings: Any) -> None:
    settings.ENVIRONMENT = "live"
    taxpayer, at = make.taxpayer(), timezone.now()
    later = at + timedelta(days=1)
    for call in (
        lambda: make_sandbox(at),
        lambda: register_sandbox_client(
            name=SandboxName.WORKS, taxpayer=taxpayer, secret_expires_at=later, by=BY, at=at
        ),
        lambda: move_sandbox_secret_end(name=SandboxName.WORKS, last_moment=later, by=BY, at=at),
        lambda: reset_sandbox_counter(name=SandboxName.WORKS),
    ):
        with pytest.raises(ServiceError, match="ENVIRONMENT=test"):
            call()
    assert not SystemUser.objects.exists()


def test_a_live_service_refuses_its_clients_by_their_form(sandbox: None, settings: Any) -> None:
    settings.ENVIRONMENT = "live"
    answer = log_in_as(BY_NAME[SandboxName.WORKS])
    assert answer.status_code == 400
    assert "/errors/malformed_credentials>" in answer["Link"]


TEXT, DAY = "HTTP Basic is refused.", "2027-01-31"
SHOWN = f"From {DAY}: {TEXT}"


def warning(condition: str, text: str = TEXT) -> dict[str, str]:
    return {"text": text, "from": DAY, "condition": condition}


def header_of(
    *warnings: dict[str, str], begin: Any = log_in, basic: str = "", dpop: str = "", **form: str
) -> str | None:
    operation = Operation(with_warnings(begin, [*warnings]), report_login)
    sent = {"HTTP_AUTHORIZATION": basic} if basic else {}
    sent |= {"HTTP_DPOP": dpop} if dpop else {}
    body = urlencode({"grant_type": "client_credentials", **form})
    request = RequestFactory().post(PATH, body, content_type=FORM, **sent)  # type: ignore[arg-type]
    return answer_by(operation, request).headers.get(HEADER)


def test_a_condition_concerns_those_requests_and_no_others(erp: Erp) -> None:
    body = erp.credentials
    for condition, concerned, others in (
        ("every_login", [{"basic": erp.basic}, body], []),
        ("client_secret", [{"basic": erp.basic}, body], []),
        ("client_secret_basic", [{"basic": erp.basic}], [body]),
        ("scope_left_out", [body], [body | {"scope": "InvoicingAPI"}]),
        ("without_dpop", [body], [body | {"dpop": "x"}]),
    ):
        for request in concerned:
            assert header_of(warning(condition), **request) == SHOWN, (condition, request)
        for request in others:
            assert header_of(warning(condition), **request) is None, (condition, request)


def test_a_refusal_carries_it_too_and_tells_a_stranger_nothing(erp: Erp) -> None:
    known = erp.credentials | {"client_secret": new_erp().client_secret}
    unknown = erp.credentials | {"client_id": erp_of(SandboxName.WORKS).client_id}
    for sent in (known, unknown):  # which is not registered here
        assert header_of(warning("client_secret"), **sent) == SHOWN


def test_a_client_of_the_sandbox_always_gets_one(sandbox: None) -> None:
    erp = erp_of(SandboxName.SYSTEM_WARNING)
    own = "From 2999-12-31: This is a test of X-System-Warning."
    assert erp.login()[HEADER] == own
    assert HEADER not in erp_of(SandboxName.WORKS).login()
    both = header_of(warning("every_login"), begin=log_in_with_sandbox, **erp.credentials)
    assert both == f"{own} | {SHOWN}"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "not a JSON list"),
        (["x"], "exactly text, from and condition"),
        ([{"text": "x", "from": DAY}], "exactly text, from and condition"),
        ([warning("always")], "the condition is unknown. Choose from: every_login, client_secret"),
        ([warning("every_login", "")], "the text is not"),
        ([warning("every_login", "a | b")], "the text is not"),
        ([warning("every_login", "a\nb")], "the text is not"),
        ([warning("every_login", "x" * 301)], "the text is not"),
        ([warning("every_login") | {"from": "31.01.2027"}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"from": "20270131"}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"from": 2027}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"condition": []}], "the condition is unknown"),
    ],
)
def test_a_wrong_value_is_named(value: Any, fault: str, settings: Any) -> None:
    (line,) = faults_of(value)
    assert fault in line
    settings.SYSTEM_WARNINGS = value
    assert [found.id for found in check_settings()] == ["tokens.E017"]


PATHS = ["en/sandbox", "ms/sandbox", "sandbox", "sandbox.json", "sandbox/portal", "sandbox/reset"]

# Also what a process says of it: nothing names what is not there.
STATED = """
import json
from django.test import Client
from identity.urls import urlpatterns
from tokens.operations.paths import OPERATIONS
client = Client(headers={"host": "localhost"})
pages = [client.get(path) for path in ("/", "/openapi.json", "/SANDBOX")]
print(json.dumps({
    "paths": sorted(str(p.pattern) for p in urlpatterns if "sandbox" in str(p.pattern)),
    "login": OPERATIONS["/connect/token"].begin.__name__,
    "named": ["/sandbox" in page.content.decode().lower() for page in pages],
}))
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("given", "paths", "login", "named"),
    [
        ({"SERVE": "login", "ENVIRONMENT": "test"}, PATHS, "log_in_with_sandbox", [True] * 3),
        ({"SERVE": "staff", "ENVIRONMENT": "test"}, [], "log_in_with_sandbox", [False] * 3),
        ({"SERVE": "both", "ENVIRONMENT": "live"}, [], "log_in", [False] * 3),
        # The setting wraps the login, and without it nothing does.
        (
            {"ENVIRONMENT": "live", "SYSTEM_WARNINGS": json.dumps([warning("every_login")])},
            *([], "begin_warned", [False] * 3),
        ),
    ],
    ids=["test", "staff", "live", "warned"],
)
def test_the_sandbox_is_in_test_alone(
    tmp_path_factory: pytest.TempPathFactory,
    given: dict[str, str],
    paths: list[str],
    login: str,
    named: list[bool],
) -> None:
    shell = service_environment(tmp_path_factory.mktemp("var"), 0, **given)
    assert json.loads(manage(shell, "shell", "--no-imports", "-c", STATED)) == {
        "paths": paths,
        "login": login,
        "named": named,
    }
