"""A client that means to act for another taxpayer never silently gets a token for itself."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.endpoint.test_event_loop import Answer, Sent, acting, answers_to, through_django
from tests.introspection.api import claims_of
from tokens.models import LoginEvent
from tokens.request.on_behalf_of import has_misspelled_header, spells_on_behalf_of

MISSPELLED = [
    *("On-Behalf-Of", "on_behalf_of", "X-OnBehalfOf", "onbehalf", "X-On-Behalf-Of", "ON_BEHALF_OF"),
    *("on.behalf.of", "OnBehalfOf-TIN", "onbehalfof_", "onbehalfof1", "O-n-B-e-h-a-l-f-O-f"),
]
OTHERS = [
    *("Content-Type", "Authorization", "Accept", "Connection", "Content-Length", "Origin", "Host"),
    *(
        "X-Forwarded-For",
        "Forwarded",
        "Behalf",
        "On-Be",
        "On-Half",
        "Of-Behalf-On",
        "Honour-Belief",
    ),
]

# The event loop's own connections see only what is committed.
committed = pytest.mark.django_db(transaction=True)


def through_event_loop(sent: Sent) -> Answer:
    (answer,) = answers_to([sent])
    return answer


both = pytest.mark.parametrize("send", [through_django, through_event_loop])
Send = Callable[[Sent], Answer]


def assert_refused(answer: Answer, says: str) -> None:
    """As `malformed_on_behalf_of`, with the name of the right header, and recorded as such."""
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
    sent = acting()
    (taxpayer,) = sent.headers.values()
    assert_refused(send(replace(sent, headers={name: taxpayer})), "under another name")


@committed
@both
@pytest.mark.parametrize("value", ["", "C1000000001"])
def test_it_is_refused_beside_the_right_header_and_without_a_value_too(
    send: Send, value: str
) -> None:
    sent = acting()
    headers = sent.headers | {"On-Behalf-Of": value}
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
