"""The facts of one client, as they are in the database now."""

import pytest

from taxpayers.credentials import hash_secret
from taxpayers.facts.query import load_facts
from taxpayers.facts.values import FactsQuery
from tests.support.erp import Erp


@pytest.mark.django_db
def test_the_facts_are_those_of_the_client_with_this_secret(erp: Erp) -> None:
    facts = load_facts(FactsQuery(erp.client_id, hash_secret(erp.client_secret), None)).facts
    assert facts is not None
    assert (facts.client.id, str(facts.client.taxpayer)) == (erp.system_user.pk, erp.tin)


@pytest.mark.django_db
def test_there_are_none_for_another_secret(erp: Erp) -> None:
    assert load_facts(FactsQuery(erp.client_id, hash_secret("another"), None)).facts is None
