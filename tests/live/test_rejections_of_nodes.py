"""Rejected requests over processes and nodes: as many are stored as before a pause, and no more."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx

from tests.conftest import StartService
from tests.live.test_live_service import logins, new_client
from tests.support.erp import PATH
from tokens.models import FailureBucket, LoginEvent


def test_rejected_requests_are_counted_exactly_over_processes_and_nodes(
    service: StartService, postgres_url: str
) -> None:
    nodes = [service(postgres_url, WEB_PROCESSES="2") for _ in range(2)]

    def reject(n: int) -> int:
        url = f"{nodes[n % len(nodes)].url}{PATH}"
        return httpx.post(url, data={"grant_type": "x"}, timeout=30).status_code

    def at_once(count: int) -> Counter[int]:
        with ThreadPoolExecutor(16) as threads:
            return Counter(threads.map(reject, range(count)))

    def bring_near_the_pause() -> None:
        """The next rejected request begins a pause of 30 seconds."""
        now = datetime.now(UTC)
        FailureBucket.objects.update(failures=505, last_at=now, retry_at=now)

    assert at_once(80) == {400: 80}
    assert nodes[0].run(FailureBucket.objects.get).failures == 80
    nodes[0].run(bring_near_the_pause)
    assert at_once(60) == {400: 1, 429: 59}
    assert nodes[0].run(FailureBucket.objects.get).failures == 506
    assert nodes[0].run(LoginEvent.objects.count) == 81
    assert logins(nodes, new_client(nodes[0]), 12) == {200: 12}
