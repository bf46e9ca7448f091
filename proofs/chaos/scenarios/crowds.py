"""Many more clients at once than a node can answer."""

import asyncio
from collections import Counter
from functools import partial
from urllib.parse import urlencode

from proofs.chaos.load import rush
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenario, Scenarios, Stage
from tests.support.erp import FORM, PATH, Erp

_AT_MOST_SECONDS = 20.0


def _rush(stage: Stage, count: int) -> None:
    erps = stage.cluster.population.crowd
    requests = [_request(erps[number % len(erps)]) for number in range(count)]
    port = int(stage.cluster.nodes[0].service.environment["PORT"])
    stage.begins()
    answers = asyncio.run(rush(port, requests, "crowd", _AT_MOST_SECONDS))
    stage.ends()
    stage.load.answers += answers
    statuses = Counter(answer.status for answer in answers)
    accepted = [answer.seconds for answer in answers if answer.token]
    stage.note(
        f"of the crowd {statuses[200]} got a token, the slowest after {max(accepted):.1f} s,"
        f" and {statuses[503]} a 503; all within {stage.ended_at - stage.began_at:.1f} s"
    )


def _request(erp: Erp) -> bytes:
    body = urlencode(erp.form)
    return (
        f"POST {PATH} HTTP/1.1\r\nHost: id.example.org\r\nConnection: close\r\n"
        f"X-Forwarded-Proto: https\r\nX-Forwarded-For: 127.0.0.3\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


SCENARIOS = Scenarios(
    Scenario(
        f"crowd-{count}",
        f"{count:,} connections at once to one node, each with a login",
        partial(_rush, count=count),
        # One batch of each process: what took longer than its second is stored all the same.
        Promise(recovers_within=1, answers_within=seconds, never_received=2 * 64),
    )
    for count, seconds in ((500, 4.0), (5000, 12.0))
)
