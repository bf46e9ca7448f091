"""Logins say who it was: names beside TINs and client IDs, and 403 pages lead on."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from taxpayers.models import Change
from tests.support.factories import SystemUserFactory, TaxpayerFactory, stored_login
from tests.support.staff import list_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, tzinfo=UTC)


def test_names_stand_beside_tins_and_client_ids_with_the_same_number_of_queries(
    viewer: Client,
) -> None:
    counts = set()
    for number in range(3):
        rob, name = f"ROB-0000{number}", f"Kedai <{number}>"
        shop = str(TaxpayerFactory.create(tin="C77000111", rob=rob, name=name).identifier)
        agent = TaxpayerFactory.create(name=f"Agent {number}")
        user = SystemUserFactory.create(taxpayer=agent, name=f"Till {number}")
        stored_login(AT, "no_permission", user, subject=shop, actor=agent.tin)
        with CaptureQueriesContext(connection) as queries:
            page = viewer.get(list_url(LoginEvent))
        counts.add(len(queries))
        assert f"{user.client_id} {user.name}" in text_of(page)
        assert f"{shop} {name} by {agent.tin} {agent.name}" in text_of(page)
        assert f"Kedai &lt;{number}&gt;" in page.content.decode()
    assert len(counts) == 1


def test_a_page_that_a_role_may_not_open_has_the_menu(viewer: Client) -> None:
    page = viewer.get(list_url(Change))
    assert page.status_code == 403
    shown = page.content.decode()
    assert "Your role does not allow this." in shown
    assert f'href="{list_url(LoginEvent)}"' in shown  # of the menu
