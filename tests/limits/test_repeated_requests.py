"""A request that was denied is not read again while it repeats itself, but looked up each time."""

from typing import Any
from unittest.mock import Mock
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from tests.facts.login_cases import NO_PAUSE, NOW, PAUSE, RIGHT, WRONG, Memory, Registry, drive
from tests.support.erp import FORM
from tokens.client_auth.certificate import CertificateHeaders
from tokens.operations import login
from tokens.operations.node import Node
from tokens.operations.repeated_requests import RepeatedRequests
from tokens.rate_limits.throttle import DenialCache
from tokens.request.arrival import receive
from tokens.request.token_request import RawTokenRequest, TokenRequest, read_token_request

META = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}
RAW = receive(META, urlencode(RIGHT | WRONG).encode(), NOW)[1]


def status(node: Node, raw: RawTokenRequest, results: list[Any]) -> int:
    arrival, _raw = receive(META, b"", node.clock.now())
    return drive(login.log_in(node, arrival, raw), results)[1].answer.status


def test_while_it_is_denied_it_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    node, reader = Node(Memory(None)), Mock(wraps=read_token_request)
    monkeypatch.setattr(login, "read_token_request", reader)
    assert status(node, RAW, [Registry(None), PAUSE]) == 429
    assert status(node, RAW, []) == 429
    assert reader.call_count == 1
    assert status(node, replace(RAW, accept="text/html"), []) == 429
    assert reader.call_count == 2, "another one is read"
    object.__setattr__(node, "denials", DenialCache())
    assert status(node, RAW, [Registry(None), NO_PAUSE]) == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "GET"},
        {"is_secure": False},
        {"body": RAW.body + b"&scope=A"},
        {"body_fault": "cut off"},
        {"content_type": "text/plain"},
        {"query_string": "a=b"},
        {"authorization": "Basic YTpi"},
        {"on_behalf_of": ""},
        {"on_behalf_of_is_misspelled": True},
        {"certificate": CertificateHeaders("a", "b", "c")},
        {"dpop": "a.b.c"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_request_is_not_taken_for_it(changed: dict[str, Any]) -> None:
    repeated, asked = RepeatedRequests(), TokenRequest(None, None, None)  # type: ignore[arg-type]
    repeated.remember(RAW, asked)
    assert repeated.find(RAW) is asked
    assert repeated.find(replace(RAW, **changed)) is None


def test_many_of_them_fill_no_memory() -> None:
    repeated, asked = RepeatedRequests(), TokenRequest(None, None, None)  # type: ignore[arg-type]
    for number in range(300):
        repeated.remember(replace(RAW, query_string=str(number)), asked)
    found = [repeated.find(replace(RAW, query_string=str(n))) for n in range(300)]
    assert (found[0], found[299]) == (None, asked)
