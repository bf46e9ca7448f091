"""Bad references as a real server passes them on."""

import httpx
import pytest

from tests.servers.service import Service


@pytest.mark.parametrize("reference", ["x", "%00", "%2e%2e", "%ff%fe", "a" * 6_000, "%"])
def test_a_bad_reference_is_a_404_or_a_400_in_json(node: Service, reference: str) -> None:
    """What a client does at two nodes behind the real proxy: tests/live/test_load_balancer.py."""
    answer = httpx.post(f"{node.url}/api/v1/logins/{reference}/explanation")
    assert answer.status_code in (400, 401, 404)
    assert set(answer.json()) == {"error", "error_description"}
