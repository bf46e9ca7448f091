"""What a trace shows of a login, and what it never holds."""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from identity.traces.endpoint import TracedEndpoint
from identity.traces.export import Export
from taxpayers.credentials import new_client_secret
from tests.endpoint.test_event_loop import Sent, ask, login_of
from tests.facts.test_confirmation import limit_changes_before_each_count
from tests.servers.processes import until
from tests.support.erp import Erp, new_erp
from tests.support.outages import writing_fails
from tests.traces.conftest import Collector, Span
from tokens.answers.response import Answer
from tokens.keys.signer import current_key_ring

# The connections of the event loop see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT_HEADER = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-00"}


@pytest.fixture(autouse=True)
def every_login(settings: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    settings.OTEL_TRACES_SAMPLER_ARG = 1.0


def answers_to(*batches: Sequence[Sent]) -> list[Answer]:
    """To the requests of each batch at the same moment, one batch after the other."""
    current_key_ring(datetime.now(UTC))  # the loop itself reads no keys

    async def run() -> list[Answer]:
        export = Export()
        export.begin()
        endpoint = TracedEndpoint(export=export)
        try:
            answers: list[Answer] = []
            for batch in batches:
                answers += await asyncio.gather(*(ask(endpoint, sent) for sent in batch))
            return answers
        finally:
            await endpoint.close()

    return asyncio.run(run())


def requests_of(collector: Collector, count: int) -> list[Span]:
    until(lambda: len([span for span in collector.spans if span.kind == "server"]) == count)
    return [span for span in collector.spans if span.kind == "server"]


def names(spans: Iterable[Span]) -> list[str]:
    return [span.name for span in spans]


def test_a_login_is_a_span_with_one_for_each_call_of_the_database(collector: Collector) -> None:
    (answer,) = answers_to([login_of(new_erp())])
    (request,) = requests_of(collector, 1)
    assert (request.name, request.parent, request.is_error) == ("POST /connect/token", "", False)
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/connect/token",
        "url.path": "/connect/token",
        "http.response.status_code": 200,
        "identity.outcome": "issued",
        "identity.correlation_id": answer.headers["correlationId"],
    }
    calls = collector.children_of(request)
    # "take": the client's first login
    assert names(calls) == ["read registry", "take status index", "record login"]
    for call, after in itertools.pairwise(calls):
        assert (call.kind, call.attributes["db.system.name"]) == ("client", connection.vendor)
        assert request.began <= call.began <= call.ended <= after.began <= request.ended
    assert {span.trace for span in collector.spans} == {request.trace}
    assert {one["service.name"] for one in collector.resources} == {"token-service"}


def test_a_refusal_is_no_error_and_has_its_reason(collector: Collector) -> None:
    (answer,) = answers_to([login_of(new_erp(), client_secret=new_client_secret("test"))])
    (request,) = requests_of(collector, 1)
    assert answer.status == request.attributes["http.response.status_code"] == 400
    assert request.attributes["identity.outcome"] == "invalid_credentials"
    assert names(collector.children_of(request))[-1:] == ["record login"]
    assert not [span for span in collector.spans if span.is_error]


def test_a_503_is_an_error_without_the_text_of_the_database(collector: Collector) -> None:
    erp = new_erp()
    answers_to([login_of(erp)])
    with writing_fails("login_events"):
        (answer,) = answers_to([login_of(erp)])
    (request,) = [span for span in requests_of(collector, 2) if span.is_error]
    assert answer.status == request.attributes["http.response.status_code"] == 503
    assert request.attributes["error.type"] == "temporarily_unavailable"
    failed = [span for span in collector.spans if span.is_error and span.kind != "server"]
    assert {span.name for span in failed} == {"record login"}
    assert not [span for span in collector.spans if "event exception" in span.attributes]
    assert not any(b"disk full" in body for body in collector.bodies)


def test_a_fault_of_ours_is_an_error(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = login_of(new_erp())
    monkeypatch.setattr("tokens.operations.login._decide", lambda *_: 1 / 0)
    (answer,) = answers_to([sent])
    (request,) = requests_of(collector, 1)
    assert (answer.status, request.is_error) == (500, True)
    assert request.attributes["error.type"] == "server_error"


def test_no_credential_token_or_address_is_in_a_trace(collector: Collector) -> None:
    erp = new_erp()
    wrong = new_client_secret("test")
    headers = {"User-Agent": "an-erp", "X-Forwarded-For": "203.0.113.7"}
    sent = [login_of(erp), login_of(erp, client_secret=wrong), login_of(erp, scope="Unknown")]
    sent.append(Sent(sent[0].body, headers={"onbehalfof": "C7654321"} | headers))
    sent.append(Sent(b"client_secret=" + erp.client_secret.encode(), query="client_id=q1w2e3"))
    answers = answers_to(sent)
    requests_of(collector, len(sent))
    exported = b"".join(collector.bodies)
    hidden = [erp.client_id, erp.client_secret, wrong, erp.tin, "an-erp", "203.0.113.7", "C7654321"]
    hidden += ["127.0.0.1", "q1w2e3", "eyJ"]
    assert [text for text in hidden if text.encode() in exported] == []
    assert b"eyJ" in answers[0].body


@pytest.mark.postgresql
def test_a_client_that_changes_all_the_time_shows_its_lock(
    erp: Erp, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limit_changes_before_each_count(erp, monkeypatch):
        answers_to([login_of(erp)])
    (request,) = requests_of(collector, 1)
    calls = names(collector.children_of(request))
    assert calls.count("lock client and read registry") == 1
    assert calls[-1] == "record login"
    assert not [span for span in collector.spans if span.is_error]


def test_a_trusted_proxy_decides_whose_trace_a_login_belongs_to(
    collector: Collector, settings: Settings
) -> None:
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    settings.OTEL_TRACES_SAMPLER_ARG = 0.0
    erp = new_erp()
    headers: tuple[dict[str, str], ...] = (PARENT_HEADER, NOT_SAMPLED, {})
    answers_to([Sent(login_of(erp).body, headers=each) for each in headers])
    (request,) = requests_of(collector, 1)
    assert (request.trace, request.parent) == (TRACE, PARENT)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_traceparent_of_a_stranger_is_ignored(
    collector: Collector, settings: Settings, share: float
) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.5"]
    settings.OTEL_TRACES_SAMPLER_ARG = share
    body, count = login_of(new_erp()).body, round(2 * share)
    answers_to([Sent(body, headers=each) for each in (PARENT_HEADER, NOT_SAMPLED)])
    assert [span.parent for span in requests_of(collector, count)] == [""] * count
    assert TRACE not in {span.trace for span in collector.spans}


def test_a_wrong_variable_of_opentelemetry_costs_the_traces_and_no_login(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    (answer,) = answers_to([login_of(new_erp())])
    assert answer.status == 200
    assert "no traces are sent: correct the OTEL_ variables" in caplog.messages
    assert collector.spans == []
