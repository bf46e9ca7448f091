"""Credentials that may do less: limits for others, and allowed networks (contract 1 and 4)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from pytest_django import Settings

from taxpayers.identifiers import TaxpayerId
from taxpayers.services import Author, change_credential, limit_system_user, set_taxpayer_active
from tests.endpoint.test_refusals import AUTHORITY, DEVELOPER, MATCHED
from tests.support.erp import Erp, assert_refused, description_of, new_erp, post, reason_of
from tests.support.factories import SUBMIT, VIEW, GrantedPermissionFactory, TaxpayerFactory
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
OPERATOR, ADMINISTRATOR = "operator of the ERP system", "administrator of the intermediary"
HERE = "127.0.0.1"


def limit(erp: Erp, *codes: str, taxpayers: tuple[TaxpayerId, ...] = ()) -> None:
    limit_system_user(
        system_user=erp.system_user,
        permissions=codes,
        taxpayers=taxpayers,
        reason="one branch",
        by=Author("officer"),
        at=datetime.now(UTC),
    )


def allow_networks(erp: Erp, *networks: str) -> None:
    change_credential(
        credential=erp.system_user.credentials.latest("pk"),
        allowed_networks=networks,
        reason="a fixed address",
        by=Author("officer"),
        at=datetime.now(UTC),
    )


def granted(erp: Erp, *codes: str) -> TaxpayerId:
    permission = GrantedPermissionFactory.create(intermediary=erp.role, codes=codes or None)
    identifier: TaxpayerId = permission.taxpayer.identifier
    return identifier


def refused(answer: HttpResponse, reason: str, says: str, fixed_by: str) -> None:
    error = "invalid_client" if reason == "source_network_not_allowed" else "unauthorised_client"
    assert_refused(
        answer,
        reason=reason,
        status=400,
        error=error,
        says=says,
        fixed_by=fixed_by,
        headers=MATCHED,
    )


def test_nothing_granted_that_is_allowed_is_refused(intermediary: Erp) -> None:
    tin = granted(intermediary, SUBMIT)
    limit(intermediary, VIEW)
    answer = intermediary.login(on_behalf_of=str(tin))
    refused(answer, "permissions_not_allowed", "limited to some permissions", ADMINISTRATOR)


def test_a_limited_client_gets_no_token_for_its_own_taxpayer(intermediary: Erp) -> None:
    tin = granted(intermediary, SUBMIT, VIEW)
    for codes, taxpayers in (([VIEW], ()), ([], (tin,))):
        limit(intermediary, *codes, taxpayers=taxpayers)
        answer = intermediary.login()
        refused(answer, "own_taxpayer_not_allowed", "must send onbehalfof", DEVELOPER)
        assert intermediary.login(on_behalf_of=str(tin)).status_code == 200


def test_of_a_taxpayer_outside_of_the_limit_nothing_is_told(intermediary: Erp) -> None:
    """Granted, not granted, not active, or not registered at all: one text."""
    allowed, other = granted(intermediary), granted(intermediary)
    without, inactive = TaxpayerFactory.create(), TaxpayerFactory.create()
    set_taxpayer_active(
        taxpayer=inactive,
        is_active=False,
        reason="closed",
        by=Author("officer"),
        at=datetime.now(UTC),
    )
    with_rob = TaxpayerId(allowed.tin, "202001234567")
    limit(intermediary, taxpayers=(allowed,))
    named = (other, without.identifier, inactive.identifier, TaxpayerId("C0000000000"), with_rob)
    answers = [intermediary.login(on_behalf_of=str(tin)) for tin in named]
    for answer in answers:
        refused(answer, "taxpayer_not_allowed", "certain taxpayers only", ADMINISTRATOR)
    assert len({a.content.decode().replace(a["correlationId"], "") for a in answers}) == 1
    assert intermediary.login(on_behalf_of=str(allowed)).status_code == 200


def test_a_taxpayer_is_the_whole_identifier_and_no_part_of_it(intermediary: Erp) -> None:
    permission = GrantedPermissionFactory.create(
        intermediary=intermediary.role, taxpayer__tin="C12345", taxpayer__rob="ROB-12345"
    )
    for tin, rob in (("C12345", ""), ("C123456", ""), ("C12345", "ROB-123456"), ("C1234", "")):
        TaxpayerFactory.create(tin=tin, rob=rob)
    both = permission.taxpayer.identifier
    limit(intermediary, taxpayers=(TaxpayerId("C123456"), both))
    assert intermediary.login(on_behalf_of=str(both)).status_code == 200
    for other in ("C12345", "C1234", "C12345:ROB-123456", "C123456:ROB-12345"):
        assert reason_of(intermediary.login(on_behalf_of=other)) == "taxpayer_not_allowed"
    assert reason_of(intermediary.login(on_behalf_of="C123456")) == "no_permission"


# --- Networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "address", "is_allowed"),
    [
        ("203.0.113.0/24", "203.0.113.200", True),
        ("203.0.113.0/24", "203.0.114.1", False),
        ("203.0.113.7", "::ffff:203.0.113.7", True),
        ("2001:db8::/32", "2001:db8:1::1", True),
        ("203.0.113.0/24", "", False),  # a local socket: the address is not known
    ],
)
def test_a_login_comes_from_an_allowed_network(
    erp: Erp, network: str, address: str, is_allowed: bool
) -> None:
    """Each form of networks: test_source_networks.py."""
    allow_networks(erp, network)
    expected = "" if is_allowed else "source_network_not_allowed"
    assert reason_of(login_from(erp, address)) == expected


def login_from(erp: Erp, address: str, **headers: Any) -> HttpResponse:
    body = "&".join(f"{name}={value}" for name, value in erp.form.items())
    return post(body, REMOTE_ADDR=address, headers=headers)


def test_the_refusal_names_the_address_and_nothing_of_the_networks(erp: Erp) -> None:
    """To a client with the right secret; if the address is not known, nobody is blamed."""
    allow_networks(erp, "203.0.113.0/24")
    reason = "source_network_not_allowed"
    answer = erp.login()
    refused(answer, reason, f"from another address: {HERE}. ", OPERATOR)
    assert b"203.0.113" not in answer.content
    assert AUTHORITY.split()[-1] in json.loads(answer.content)["error_description"]
    event = LoginEvent.objects.get()
    assert (event.source_address, event.detail) == (HERE, HERE)
    assert event.secret_id == erp.system_user.credentials.get().pk
    unknown = "report the reference to the tax authority"
    refused(login_from(erp, ""), reason, "cannot be known", unknown)


def test_the_address_is_the_one_that_a_trusted_proxy_reports(erp: Erp, settings: Settings) -> None:
    allow_networks(erp, "203.0.113.7")
    forwarded = {"X-Forwarded-For": "203.0.113.7"}
    assert reason_of(erp.login(headers=forwarded)) == "source_network_not_allowed"
    settings.TRUSTED_PROXIES = [HERE]
    assert erp.login(headers=forwarded).status_code == 200
    assert reason_of(erp.login()) == "source_network_not_allowed"


def test_a_wrong_secret_from_elsewhere_tells_nothing_about_networks(erp: Erp) -> None:
    told = [description_of(erp.login(client_secret=new_erp().client_secret))]
    allow_networks(erp, "203.0.113.0/24")
    told.append(description_of(erp.login(client_secret=new_erp().client_secret)))
    assert told[0] == told[1]


def test_a_stolen_secret_uses_up_nothing_of_its_owners_limit(erp: Erp) -> None:
    allow_networks(erp, HERE)
    answers = [login_from(erp, "198.51.100.9") for _ in range(20)]
    assert {answer.status_code for answer in answers} == {400, 429}, "it counts as a failure"
    assert [erp.login().status_code for _ in range(12)] == [200] * 12
    assert erp.login().status_code == 429
