"""The OpenAPI description is valid and whole; that it is true, test_every_operation.py proves."""

import json
from pathlib import Path
from typing import Any

import drf_spectacular
import jsonschema_rs
import pytest
from drf_spectacular.drainage import GENERATOR_STATS

from identity.api.framework.problems import PROBLEMS
from identity.api.openapi import describe
from identity.api.urls import records
from tests.management_api.portal import BASE, assert_ok, assert_problem, send

RULES = Path(drf_spectacular.__file__).parent / "validation" / "openapi_3_1_schema.json"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(send("GET", f"{BASE}/openapi.json", None).content)
    return found


def test_it_is_valid_openapi_and_was_made_without_a_warning(
    schema: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert schema["openapi"] == "3.1.0"
    rules = json.loads(RULES.read_text(encoding="utf-8"))
    jsonschema_rs.validator_for(rules).validate(schema)
    GENERATOR_STATS.reset()
    describe(records)
    assert not GENERATOR_STATS, capfd.readouterr().err


def test_every_kind_of_problem_has_its_page_without_a_token() -> None:
    for kind, row in PROBLEMS.items():
        body = assert_ok(send("GET", f"{BASE}/problems/{kind}", None))
        assert body == {
            "type": f"http://localhost:8000{BASE}/problems/{kind}",
            "title": row.title,
            "status": row.status,
            "advice": row.advice,
        }
    assert_problem(send("GET", f"{BASE}/problems/x", None), 404, "not_found")
