"""An API that would rather ask: the package and `POST /connect/introspect` (RFC 7662)."""

import pytest
from pytest_django import DjangoDbBlocker

from einvoicing_tokens import AccessToken, InvalidToken, TokenVerifier, Unavailable
from einvoicing_tokens.status.status_lists import ENDED
from tests.introspection.party import Party
from tests.packages.issuer import INTROSPECT, Issuer, is_accepted
from tests.packages.test_keys import assert_unavailable
from tests.servers.service import Service

CREDENTIALS = ("ci_test_api", "cs_test_secret")


@pytest.fixture(scope="module")
def party(node: Service, django_db_blocker: DjangoDbBlocker) -> Party:
    with django_db_blocker.unblock():  # of the service that runs
        return Party(node, "C6100000061")


def asking(party: Party, secret: str = "") -> TokenVerifier:
    credentials = (party.api["client_id"], secret or party.api["client_secret"])
    return TokenVerifier(party.service.url, audience="InvoicingAPI", introspect_as=credentials)


def test_a_token_is_active_until_its_client_ends_it(party: Party) -> None:
    verifier, token = asking(party), party.token()
    assert isinstance(verifier.verify(token), AccessToken)
    party.revoke(token)
    with pytest.raises(InvalidToken) as refused:
        verifier.verify(token)
    assert (refused.value.status, str(refused.value)) == (401, ENDED)


def test_wrong_credentials_of_the_api_are_503_and_in_its_log(
    party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = asking(party, secret="cs_test_wrong")
    with pytest.raises(Unavailable) as refused:
        verifier.verify(party.token())
    assert "secret" not in str(refused.value)
    assert "introspection: 401" in caplog.text
    assert "Reference: " in caplog.text, "the service's own description says what to correct"


def test_a_token_that_is_not_ours_is_refused_without_a_question(issuer: Issuer) -> None:
    with pytest.raises(InvalidToken):
        issuer.verifier(introspect_as=CREDENTIALS).verify(issuer.token(aud="Other"))
    assert issuer.requests[INTROSPECT] == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"active": "true"}', b'{"active": 1}', b'{"active": null}', b"\xff"],
)
def test_an_answer_that_is_neither_yes_nor_no_lets_nobody_in(issuer: Issuer, body: bytes) -> None:
    issuer.answers[INTROSPECT] = body
    assert_unavailable(issuer.verifier(introspect_as=CREDENTIALS), issuer.token())


def test_an_answer_decides_about_one_request_only(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(introspect_as=CREDENTIALS), issuer.token()
    issuer.answers[INTROSPECT] = b'{"active": true}'
    assert is_accepted(verifier, token)
    issuer.answers[INTROSPECT] = b'{"active": false}'
    with pytest.raises(InvalidToken):
        verifier.verify(token)
    issuer.is_away = True
    assert_unavailable(verifier, token)
