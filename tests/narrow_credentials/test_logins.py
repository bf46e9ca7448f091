"""Credentials that may do less: limits for others, and allowed networks (contract 1 and 4)."""

from typing import Any

import pytest
from django.http import HttpResponse
from pytest_django import Settings

from taxpayers.identifiers import TaxpayerId
from taxpayers.services import change_credential, limit_system_user, set_taxpayer_active
from tests.support.erp import Erp, description_of, post, reason_of
from tests.support.factories import GrantedPermissionFactory, TaxpayerFactory
from tests.support.moments import why
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

HERE = "127.0.0.1"


def limit(erp: Erp, taxpayers: tuple[TaxpayerId, ...]) -> None:
    limit_system_user(system_user=erp.system_user, permissions=(), taxpayers=taxpayers, **why())


def allow_networks(erp: Erp, *networks: str) -> None:
    credential = erp.system_user.credentials.latest("pk")
    change_credential(credential=credential, allowed_networks=networks, **why())


def granted(erp: Erp) -> TaxpayerId:
    identifier: TaxpayerId = GrantedPermissionFactory.create(
        intermediary=erp.role
    ).taxpayer.identifier
    return identifier


def test_of_a_taxpayer_outside_of_the_limit_nothing_is_told(intermediary: Erp) -> None:
    """Granted, not granted, not active, or not registered at all: one text."""
    allowed, other = granted(intermediary), granted(intermediary)
    without, inactive = TaxpayerFactory.create(), TaxpayerFactory.create()
    set_taxpayer_active(taxpayer=inactive, is_active=False, **why())
    with_rob = TaxpayerId(allowed.tin, "202001234567")
    limit(intermediary, (allowed,))
    named = (other, without.identifier, inactive.identifier, TaxpayerId("C0000000000"), with_rob)
    answers = [intermediary.login(on_behalf_of=str(tin)) for tin in named]
    assert {reason_of(answer) for answer in answers} == {"taxpayer_not_allowed"}
    assert len({a.content.decode().replace(a["correlationId"], "") for a in answers}) == 1
    assert intermediary.login(on_behalf_of=str(allowed)).status_code == 200


def test_a_taxpayer_is_the_whole_identifier_and_no_part_of_it(intermediary: Erp) -> None:
    permission = GrantedPermissionFactory.create(
        intermediary=intermediary.role, taxpayer__tin="C12345", taxpayer__rob="ROB-12345"
    )
    for tin, rob in (("C12345", ""), ("C123456", ""), ("C12345", "ROB-123456"), ("C1234", "")):
        TaxpayerFactory.create(tin=tin, rob=rob)
    both = permission.taxpayer.identifier
    limit(intermediary, (TaxpayerId("C123456"), both))
    assert intermediary.login(on_behalf_of=str(both)).status_code == 200
    for other in ("C12345", "C1234", "C12345:ROB-123456", "C123456:ROB-12345"):
        assert reason_of(intermediary.login(on_behalf_of=other)) == "taxpayer_not_allowed"
    assert reason_of(intermediary.login(on_behalf_of="C123456")) == "no_permission"


# --- Networks -------------------------------------------------------------------------------------


def login_from(erp: Erp, address: str, **headers: Any) -> HttpResponse:
    body = "&".join(f"{name}={value}" for name, value in erp.form.items())
    return post(body, REMOTE_ADDR=address, headers=headers)


def test_the_refusal_names_the_address_and_nothing_of_the_networks(erp: Erp) -> None:
    allow_networks(erp, "203.0.113.0/24")
    answer = erp.login()
    assert b"203.0.113" not in answer.content
    event = LoginEvent.objects.get()
    assert (event.source_address, event.detail) == (HERE, HERE)
    assert event.secret_id == erp.system_user.credentials.get().pk
    told = description_of(login_from(erp, ""))
    assert "cannot be known" in told
    assert "report the reference to the tax authority" in told


def test_the_address_is_the_one_that_a_trusted_proxy_reports(erp: Erp, settings: Settings) -> None:
    allow_networks(erp, "203.0.113.7")
    forwarded = {"X-Forwarded-For": "203.0.113.7"}
    assert reason_of(erp.login(headers=forwarded)) == "source_network_not_allowed"
    settings.TRUSTED_PROXIES = [HERE]
    assert erp.login(headers=forwarded).status_code == 200
    assert reason_of(erp.login()) == "source_network_not_allowed"
