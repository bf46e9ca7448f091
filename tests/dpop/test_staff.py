"""Staff and operators choose what the tokens of a system user are bound to (contract 6)."""

import pytest

from taxpayers.models import SystemUser
from tests.client_auth.key_erp import new_pair
from tests.dpop.dpop_erp import DpopErp
from tests.status_lists.reader import is_ended
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp, new_erp

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


def test_a_bound_token_stays_in_force_when_something_else_changes(erp: Erp) -> None:
    change(erp, "dpop")
    token = DpopErp(erp, new_pair()).token()
    output_of("change_system_user", erp.client_id, "--logins-per-minute", "60", *REASON)
    assert not is_ended(token)
    SystemUser.objects.update(token_binding="tls")
    assert is_ended(token)
