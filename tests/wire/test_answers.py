"""What each answer of the login carries, and what it never repeats (contract 1)."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from django.test import Client

from taxpayers.credentials import new_client_secret
from tests.endpoint.test_event_loop import Sent, login_of, through_django
from tests.support import make
from tests.support.erp import FORM, PATH, Erp, assert_every_answer, new_erp
from tests.wire.test_on_behalf_of import Send, both, committed, subject_of, through_event_loop

REPRESENTED = "X-Represented-Taxpayer"


@committed
@both
@pytest.mark.parametrize(("tin", "rob"), [("C1000000001", ""), ("C1000000001", "202001234567")])
def test_a_token_comes_with_the_taxpayer_that_it_represents(send: Send, tin: str, rob: str) -> None:
    taxpayer = make.taxpayer(tin=tin, rob=rob)
    name = f"{tin}:{rob}" if rob else tin
    own = send(login_of(new_erp(taxpayer=taxpayer)))
    assert (own.headers[REPRESENTED], subject_of(own)) == (name, name)
    role = make.intermediary()
    make.permission(taxpayer=taxpayer, intermediary=role)
    sent = login_of(new_erp(taxpayer=role.taxpayer))
    acting = send(replace(sent, headers={"onbehalfof": f" {name.lower()}\t"}))
    assert (acting.headers[REPRESENTED], subject_of(acting)) == (name, name)


HIDDEN = "Zq81xHidden77"


def form_of(**fields: str) -> Sent:
    """A right login, but for these fields."""
    return login_of(new_erp(), **fields)


def body_of(extra: str) -> Sent:
    sent = login_of(new_erp())
    return replace(sent, body=sent.body + extra.encode())


def headers_of(**headers: str) -> Sent:
    return replace(
        login_of(new_erp()), headers={n.replace("_", "-"): v for n, v in headers.items()}
    )


PLACES: dict[str, Callable[[], Sent]] = {
    "id": lambda: form_of(client_id=HIDDEN),
    "id of our form": lambda: form_of(client_id=f"ci_test_{HIDDEN}"),
    "secret": lambda: form_of(client_secret=HIDDEN),
    "grant type": lambda: form_of(grant_type=HIDDEN),
    "scope": lambda: form_of(scope=HIDDEN),
    "one of the scopes": lambda: form_of(scope=f"InvoicingAPI {HIDDEN}"),
    "scope with a tab": lambda: form_of(scope=f"InvoicingAPI\t{HIDDEN}"),
    "name sent twice": lambda: body_of(f"&{HIDDEN}=1&{HIDDEN}=2"),
    "value sent twice": lambda: body_of(f"&scope={HIDDEN}&scope={HIDDEN}"),
    "bad escape": lambda: body_of(f"&a={HIDDEN}%zz"),
    "no UTF-8": lambda: body_of(f"&a={HIDDEN}%ff"),
    "query name": lambda: replace(form_of(), query=f"{HIDDEN}=%zz"),
    "query value": lambda: replace(form_of(), query=f"client_secret={HIDDEN}"),
    "onbehalfof": lambda: headers_of(onbehalfof=HIDDEN),
    "malformed onbehalfof": lambda: headers_of(onbehalfof=f"{HIDDEN}:?"),
    "list of onbehalfof": lambda: headers_of(onbehalfof=f"{HIDDEN},{HIDDEN}"),
    "another header": lambda: headers_of(On_Behalf_Of=HIDDEN),
    "its name": lambda: headers_of(**{f"OnBehalfOf_{HIDDEN}": "1"}),
    "parameter onbehalfof": lambda: body_of(f"&onbehalfof={HIDDEN}"),
    "name of a parameter": lambda: body_of(f"&onbehalfof{HIDDEN}=1"),
    "type": lambda: headers_of(Content_Type=f"text/{HIDDEN}"),
    "charset": lambda: headers_of(Content_Type=f"{FORM}; charset={HIDDEN}"),
    "Basic": lambda: headers_of(Authorization=f"Basic {HIDDEN}"),
    "Bearer": lambda: headers_of(Authorization=f"Bearer {HIDDEN}"),
    "user agent": lambda: headers_of(User_Agent=HIDDEN),
    "method": lambda: replace(form_of(), method=HIDDEN.upper()),
}


@committed
@both
@pytest.mark.parametrize("place", PLACES)
def test_what_a_client_sent_is_not_repeated(send: Send, place: str) -> None:
    answer = send(PLACES[place]())
    shown = f"{answer.reason} {answer.headers} {answer.body.decode()}".lower()
    assert HIDDEN.lower() not in shown
    assert (answer.status == 200) == (place in ("Bearer", "user agent"))


@pytest.mark.django_db
def test_a_login_needs_no_csrf_token_and_looks_at_no_cookie(erp: Erp) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.cookies.load({"sessionid": "x", "csrftoken": "y", "django_language": "ms"})
    sent = urlencode(erp.form | {"client_secret": new_client_secret("test")})
    for body, status in ((urlencode(erp.form), 200), (sent, 400)):
        response = browser.post(
            PATH, data=body, content_type=FORM, headers={"Origin": "https://evil.example"}
        )
        assert response.status_code == status
        assert_every_answer(response)  # type: ignore[arg-type]


@committed
def test_head_is_refused_without_a_body_on_the_event_loop() -> None:
    answer = through_event_loop(Sent(b"", method="HEAD"))
    assert (answer.status, answer.reason, answer.body) == (405, "invalid_request", b"")
    of_get = through_django(Sent(b"", method="GET"))
    same = set(of_get.headers) - {"correlationId"}
    assert {n: answer.headers[n] for n in same} == {n: of_get.headers[n] for n in same}
