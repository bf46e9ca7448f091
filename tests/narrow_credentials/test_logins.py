"""Credentials that may do less: limits for others, and allowed networks (contract 1 and 4)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from taxpayers.facts.source_networks import (
    LoginSource,
    NetworkFault,
    UnusableNetwork,
    is_within,
    read_networks,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import change_credential, limit_system_user
from taxpayers.services.live_credentials import validate_networks
from taxpayers.validation import ServiceError
from tests.management_api.portal import SCOPES, Portal, new_portal
from tests.support import make
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp, description_of, post, reason_of
from tests.support.moments import why
from tests.support.staff import opened, page_url, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

HERE = "127.0.0.1"


def limit(erp: Erp, taxpayers: tuple[TaxpayerId, ...]) -> None:
    limit_system_user(system_user=erp.system_user, permissions=(), taxpayers=taxpayers, **why())


def allow_networks(erp: Erp, *networks: str) -> None:
    credential = erp.system_user.credentials.latest("pk")
    change_credential(credential=credential, allowed_networks=networks, **why())


def test_a_limit_is_of_whole_identifiers_and_nothing_is_told_of_others(intermediary: Erp) -> None:
    """Granted, not granted, not active, or not registered at all: one text."""
    permission = make.permission(
        intermediary=intermediary.role, taxpayer__tin="C12345", taxpayer__rob="ROB-12345"
    )
    for tin, rob in (("C12345", ""), ("C123456", ""), ("C12345", "ROB-123456"), ("C1234", "")):
        make.taxpayer(tin=tin, rob=rob)
    both = permission.taxpayer.identifier
    limit(intermediary, (TaxpayerId("C123456"), both))
    assert intermediary.login(on_behalf_of=str(both)).status_code == 200
    assert reason_of(intermediary.login(on_behalf_of="C123456")) == "no_permission"
    others = (
        *("C12345", "C1234", "C12345:ROB-123456", "C123456:ROB-12345", "C0000000000"),
        make.permission(intermediary=intermediary.role).taxpayer.identifier,
        make.taxpayer(is_active=False).identifier,
    )
    answers = [intermediary.login(on_behalf_of=str(other)) for other in others]
    assert {reason_of(answer) for answer in answers} == {"taxpayer_not_allowed"}
    assert len({a.content.decode().replace(a["correlationId"], "") for a in answers}) == 1


def login_from(erp: Erp, address: str, **headers: Any) -> HttpResponse:
    body = "&".join(f"{name}={value}" for name, value in erp.form.items())
    return post(body, REMOTE_ADDR=address, headers=headers)


def test_the_refusal_names_the_address_and_nothing_of_the_networks(erp: Erp) -> None:
    allow_networks(erp, "203.0.113.0/24")
    assert b"203.0.113" not in erp.login().content
    event = LoginEvent.objects.get()
    assert (event.source_address, event.detail) == (HERE, HERE)
    assert event.secret_id == erp.system_user.credentials.get().pk
    told = description_of(login_from(erp, ""))
    assert "cannot be known" in told
    assert "report the reference to the tax authority" in told


WHY = {"reason": "one branch"}


def send(client: Client, url: str, **form: Any) -> Any:
    return client.post(url, {**opened(client, url), **WHY, **form})


def test_the_networks_of_a_secret_are_set_shown_and_removed(officer: Client, erp: Erp) -> None:
    user, secret = erp.system_user, erp.system_user.credentials.get()
    assert erp.login().status_code == 200
    url = f"{task_url(user, 'change_secret')}?secret={secret.pk}"
    assert url in officer.get(page_url(user)).content.decode()
    page = text_of(officer.get(url))
    assert "From where it was used, in the last 30 days" in page
    assert "127.0.0.1" in page
    answer = send(officer, url, networks="203.0.113.0/24\n2001:db8::/32, 192.0.2.7")
    assert answer.status_code == 302
    shown = "192.0.2.7/32 203.0.113.0/24 2001:db8::/32"
    assert Credential.objects.get().allowed_networks == shown
    assert f"from {shown} only" in text_of(officer.get(page_url(user)))
    assert erp.login().status_code == 400
    for task in (url, task_url(user, "rotate_secret")):
        form = officer.get(task).context["form"]
        assert form["networks"].value() == shown.replace(" ", "\n")
    send(officer, url, networks="")
    assert erp.login().status_code == 200
    assert list(Change.objects.values_list("action", flat=True)) == ["change_secret"] * 2


ISSUE = "issue_credentials"


def filled_in(client: Client, url: str) -> dict[str, Any]:
    fields = {field.html_name: field.value() for field in client.get(url).context["form"]}
    return {name: value for name, value in fields.items() if value} | WHY


@pytest.fixture
def portal(settings: Settings) -> Portal:
    settings.SCOPES = SCOPES
    return new_portal()


def test_each_door_issues_it(intermediary: Erp, officer: Client, portal: Portal) -> None:
    url = f"{task_url(SystemUser, ISSUE)}?taxpayer={intermediary.tin}"
    body = {"taxpayer": intermediary.tin, "name": "by REST", "only_on_behalf": True, **WHY}
    json_output_of(ISSUE, intermediary.tin, "--name", "by command", "--only-on-behalf")
    officer.post(url, filled_in(officer, url) | {"name": "by page"})  # its box is ticked
    assert portal.post("/system-users", body).status_code == 201
    for door in ("by command", "by page", "by REST"):
        row = SystemUser.objects.get(name=door)
        assert row.only_on_behalf
        assert Change.objects.get(object_id=row.pk, action=ISSUE).after["only_on_behalf"] is True


def test_each_door_changes_it(intermediary: Erp, officer: Client, portal: Portal) -> None:
    user = intermediary.system_user
    client_id, page = user.client_id, task_url(user, "limit_system_user")
    limits = {"allowed_permissions": [], "allowed_taxpayers": [], **WHY}

    def by_rest(**values: bool) -> None:
        path = f"/system-users/{client_id}"
        answer = portal.post(f"{path}/limits", limits | values, If_Match=portal.etag(path))
        assert answer.status_code == 200

    steps: tuple[tuple[Callable[[], Any], bool], ...] = (
        (lambda: output_of("change_system_user", client_id, "--only-on-behalf"), True),
        (lambda: output_of("change_system_user", client_id, "--name", "Renamed"), True),
        (lambda: output_of("change_system_user", client_id, "--not-limited"), False),
        (lambda: by_rest(only_on_behalf=True), True),
        (by_rest, True),
        (lambda: by_rest(only_on_behalf=False), False),
        (lambda: officer.post(page, filled_in(officer, page) | {"only_on_behalf": "on"}), True),
        (lambda: officer.post(page, filled_in(officer, page)), True),
    )
    for step, expected in steps:
        step()
        user.refresh_from_db()
        assert user.only_on_behalf is expected
    assert "It gets no token for its own taxpayer." in text_of(officer.get(page_url(user)))
    form = filled_in(officer, page)
    del form["only_on_behalf"]
    officer.post(page, form)
    user.refresh_from_db()
    assert not user.only_on_behalf


def test_a_login_on_behalf_of_its_own_taxpayer_is_told_to_leave_the_header_out(
    erp: Erp, intermediary: Erp
) -> None:
    """But a client that may not do so."""
    says = "onbehalfof names the taxpayer of this system user itself."
    for client, reason in ((erp, "not_an_intermediary"), (intermediary, "no_permission")):
        answer = client.login(on_behalf_of=client.tin)
        assert (reason_of(answer), description_of(answer).startswith(says)) == (reason, True)
    SystemUser.objects.update(only_on_behalf=True)
    answer = intermediary.login(on_behalf_of=intermediary.tin)
    assert (reason_of(answer), says in description_of(answer)) == ("no_permission", False)


PREFIX_24_IN_54_DIGITS = f"{24:054}"


def fault_of(text: str) -> tuple[str, str, str]:
    with pytest.raises(UnusableNetwork) as unusable:
        read_networks([text])
    return unusable.value.fault, unusable.value.text, unusable.value.instead


@pytest.mark.parametrize(
    ("texts", "networks"),
    [
        ([], []),
        (["192.0.2.7"], ["192.0.2.7/32"]),
        (["2001:DB8::7"], ["2001:db8::7/128"]),
        ([" 192.0.2.0/24\n", "192.0.2.0/255.255.255.0"], ["192.0.2.0/24"]),
        (
            ["2001:db8::/32", "198.51.100.0/24", "9.0.0.0/8"],
            ["9.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"],
        ),
        # IPv4 that was written as IPv6 is what the addresses of logins are.
        (["::ffff:192.0.2.0/120"], ["192.0.2.0/24"]),
        (["::ffff:192.0.2.7"], ["192.0.2.7/32"]),
        (["::ffff:0:0/97"], ["0.0.0.0/1"]),
        (["0.0.0.0/1", "::/1"], ["0.0.0.0/1", "::/1"]),
        ([f"192.0.2.0/{PREFIX_24_IN_54_DIGITS}"], ["192.0.2.0/24"]),  # 64 characters
    ],
)
def test_networks_are_stored_in_one_form_in_order_and_each_once(
    texts: list[str], networks: list[str]
) -> None:
    assert read_networks(texts) == networks


UNREADABLE = (
    *("", "x", "192.0.2", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0 192.0.2.1"),
    *("2001:db8::/129", "fe80::1%eth0", "fe80::%1/64"),
    f"192.0.2.0/0{PREFIX_24_IN_54_DIGITS}",  # 65 characters
)
MEANT = {
    "192.0.2.7/24": "192.0.2.0/24",
    "2001:db8::1/64": "2001:db8::/64",
    "::ffff:192.0.2.7/120": "192.0.2.0/24",
}


def test_what_is_no_network_is_refused_and_named_as_far_as_it_is_short() -> None:
    for text in UNREADABLE:
        assert fault_of(text) == (NetworkFault.UNREADABLE, text[:64], "")
    for text, instead in MEANT.items():
        assert fault_of(text) == (NetworkFault.HOST_BITS, text, instead)
    for text in ("0.0.0.0/0", "::/0", "::ffff:0:0/96"):
        assert fault_of(text) == (NetworkFault.EVERYWHERE, text, "")


def test_a_secret_has_20_networks_at_most() -> None:
    twenty = [f"192.0.2.{n}" for n in range(20)]
    assert len(validate_networks([*twenty, "192.0.2.0/32"]).split()) == 20
    with pytest.raises(ServiceError, match="Give 20 networks at most, not 21"):
        validate_networks([*twenty, "192.0.2.20"])


NETWORKS = ("192.0.2.0/30", "2001:db8::/64")


@pytest.mark.parametrize(
    ("address", "is_inside"),
    [
        ("192.0.2.0", True),
        ("192.0.2.3", True),
        ("::ffff:192.0.2.3", True),  # as a listener for both protocols reports it
        ("2001:db8::ffff:ffff", True),
        ("192.0.1.255", False),
        ("192.0.2.4", False),
        ("::ffff:192.0.2.4", False),
        ("2001:db8:0:1::", False),
        ("::192.0.2.1", False),
        ("192.0.2.1:443", False),
        ("", False),
        (None, False),
    ],
)
def test_who_is_within_one_of_the_networks(address: str | None, is_inside: bool) -> None:
    assert is_within(LoginSource(address), NETWORKS) is is_inside
    assert not is_within(LoginSource(address), ())
