"""What each answer of the login carries and never repeats, and the header onbehalfof (contract 1).

A client that means to act for another taxpayer never silently gets a token for itself.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from django.test import Client
from hypothesis import given, strategies as st

from taxpayers.credentials import new_client_secret
from tests.endpoint.test_event_loop import Sent, acting, answers_to, login_of, through_django
from tests.introspection.api import claims_of
from tests.support import make
from tests.support.erp import FORM, PATH, Erp, assert_every_answer, new_erp
from tokens.answers.response import Answer
from tokens.models import LoginEvent
from tokens.request.on_behalf_of import has_misspelled_header, spells_on_behalf_of

MISSPELLED = [
    *("On-Behalf-Of", "on_behalf_of", "X-OnBehalfOf", "onbehalf", "X-On-Behalf-Of", "ON_BEHALF_OF"),
    *("on.behalf.of", "OnBehalfOf-TIN", "onbehalfof_", "onbehalfof1", "O-n-B-e-h-a-l-f-O-f"),
]
OTHERS = [
    *("Content-Type", "Authorization", "Accept", "Connection", "Content-Length", "Origin", "Host"),
    *("X-Forwarded-For", "Forwarded", "Behalf", "On-Be", "On-Half", "Of-Behalf-On"),
    "Honour-Belief",
]

# The event loop's own connections see only what is committed.
committed = pytest.mark.django_db(transaction=True)


def through_event_loop(sent: Sent) -> Answer:
    (answer,) = answers_to([sent])
    return answer


both = pytest.mark.parametrize("send", [through_django, through_event_loop])
Send = Callable[[Sent], Answer]


def assert_refused(answer: Answer, says: str) -> None:
    assert (answer.status, answer.reason) == (400, "invalid_request")
    assert answer.headers["Link"].endswith('/errors/malformed_on_behalf_of>; rel="help"')
    body = json.loads(answer.body)
    assert body["error"] == "invalid_request"
    assert "The header onbehalfof is wrong" in body["error_description"]
    assert says in body["error_description"]
    event = LoginEvent.objects.get(pk=answer.headers["correlationId"])
    assert event.reason == "malformed_on_behalf_of"


def subject_of(answer: Answer) -> str:
    return str(claims_of(json.loads(answer.body)["access_token"])["sub"])


@pytest.mark.parametrize(
    "name", ["onbehalfof", "ONBEHALFOF", *MISSPELLED, "onbehalfof \t", "on\0b e-half"]
)
def test_a_name_with_these_letters_is_recognized(name: str) -> None:
    assert spells_on_behalf_of(name.encode())


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_name_is(name: str) -> None:
    assert not spells_on_behalf_of(name.encode())


@given(st.lists(st.text("-_. \t\x00\n1\xe9", max_size=3), min_size=10, max_size=10), st.booleans())
def test_whatever_is_between_the_letters_does_not_matter(between: list[str], upper: bool) -> None:
    name = "".join(a + b for a, b in zip("onbehalfof", between, strict=True))
    assert spells_on_behalf_of((name.upper() if upper else name).encode())


def test_no_byte_but_a_letter_makes_it_another_name() -> None:
    for byte in range(256):
        between = bytes([byte])
        assert spells_on_behalf_of(b"on" + between + b"behalf") is not between.isalpha()


def test_the_header_itself_is_not_misspelled() -> None:
    assert not has_misspelled_header(["HTTP_ONBEHALFOF", "HTTP_ACCEPT", "CONTENT_TYPE"])
    assert has_misspelled_header(["HTTP_ONBEHALFOF", "HTTP_ON_BEHALF_OF"])
    assert not has_misspelled_header(["HTTP_\udcff"])  # no Unicode, as WSGI may pass it on


@committed
@both
@pytest.mark.parametrize("name", MISSPELLED)
def test_another_header_with_these_letters_is_refused(send: Send, name: str) -> None:
    """Also beside the right one, and without a value."""
    sent = acting()
    (taxpayer,) = sent.headers.values()
    for headers in ({name: taxpayer}, sent.headers | {name: ""}, sent.headers | {name: taxpayer}):
        assert_refused(send(replace(sent, headers=headers)), "under another name")


@committed
@both
@pytest.mark.parametrize(
    "parameter",
    [
        *("onbehalfof=C1000000001", "onbehalfof=", "onbehalfof", "OnBehalfOf=C1000000001"),
        *("on_behalf_of=C1000000001", "%6fnbehalfof=C1000000001", "on+behalf+of=C1000000001"),
        *("onbehalf=C1000000001", "X-OnBehalfOf=C1000000001"),
    ],
)
@pytest.mark.parametrize("where", ["body", "query"])
def test_a_parameter_is_refused_in_the_body_and_in_the_query_string(
    send: Send, where: str, parameter: str
) -> None:
    right = replace(acting(), headers={})
    in_body = replace(right, body=right.body + b"&" + parameter.encode())
    in_query = replace(right, query=f"a=b&{parameter}")
    assert_refused(
        send(in_body if where == "body" else in_query), "as a parameter, not as a header"
    )


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
def test_head_is_refused_as_get_is_on_the_event_loop() -> None:
    """Its body is left out by the server: `tests/test_connection.py`."""
    answer = through_event_loop(Sent(b"", method="HEAD"))
    assert (answer.status, answer.reason) == (405, "invalid_request")
    of_get = through_django(Sent(b"", method="GET"))
    same = set(of_get.headers) - {"correlationId"}
    assert {n: answer.headers[n] for n in same} == {n: of_get.headers[n] for n in same}
