"""Staff and operators choose what the tokens of a system user are bound to (contract 6)."""

import pytest
from django.test import Client

from taxpayers.models import SystemUser
from tests.client_auth.key_erp import new_pair
from tests.dpop.dpop_erp import DpopErp
from tests.introspection.api import token_of
from tests.status_lists.reader import is_ended
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp, new_erp
from tests.support.staff import opened, page_url, task_url, text_of

pytestmark = pytest.mark.django_db
REASON = ("--reason", "asked by letter")


@pytest.fixture
def erp() -> Erp:
    return new_erp()


def change(erp: Erp, binding: str) -> dict[str, str]:
    answer: dict[str, str] = json_output_of(
        *("change_system_user", erp.client_id, "--token-binding", binding), *REASON
    )
    return answer


def test_the_page_shows_it_and_the_task_changes_it(officer: Client, erp: Erp) -> None:
    token = token_of(erp)
    page = text_of(officer.get(page_url(erp.system_user)))
    assert "Tokens bound to Nothing: anybody who has a token can use it" in page
    url = task_url(erp.system_user, "bind_tokens")
    form = opened(officer, url) | {"token_binding": "dpop", "reason": "asked by letter"}
    page = text_of(officer.post(url, form, follow=True))
    assert "are bound to: A key of the client (DPoP)." in page
    assert "Tokens bound to A key of the client (DPoP)" in page
    assert is_ended(token)
    back = opened(officer, url) | {"token_binding": "", "reason": "cannot do it yet"}
    officer.post(url, back, follow=True)
    assert SystemUser.objects.get().token_binding == ""
    assert erp.login().status_code == 200


def test_a_bound_token_stays_in_force_when_something_else_changes(erp: Erp) -> None:
    change(erp, "dpop")
    token = DpopErp(erp, new_pair()).token()
    output_of("change_system_user", erp.client_id, "--logins-per-minute", "60", *REASON)
    assert not is_ended(token)
    SystemUser.objects.update(token_binding="tls")
    assert is_ended(token)
