"""A library for status lists that is not ours reads those of this service (contract 2)."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from taxpayers.services import Author, block_system_user
from tests.introspection.api import token_of
from tests.servers.processes import completed
from tests.status_lists.reader import JWKS, get, reference_of
from tests.support.erp import Erp, new_erp
from tests.support.moments import now
from tokens.status_lists.publication import forget_status_lists

pytestmark = [pytest.mark.django_db, pytest.mark.processes]


def test_it_reads_the_bits_for_as_long_as_the_list_may_be_used(programs: Path, erp: Erp) -> None:
    tokens = [token_of(erp), token_of(new_erp())]
    block_system_user(system_user=erp.system_user, reason="x", by=Author("officer"), at=now())
    forget_status_lists()
    signed = get(urlsplit(reference_of(tokens[0])[0]).path).content.decode()
    jwks = json.loads(get(JWKS).content)

    def read(seconds: int) -> subprocess.CompletedProcess[str]:
        asked: dict[str, Any] = {"tokens": tokens, "list": signed, "jwks": jwks}
        return completed(
            ["node", "status_list.js"],
            input=json.dumps(asked | {"at": now().timestamp() + seconds}),
            cwd=programs,
            timeout=60,
        )

    for seconds in (0, 1_780):
        assert json.loads(read(seconds).stdout) == {"statuses": [1, 0], "ttl": 5, "seconds": 1800}
    assert "ERR_JWT_EXPIRED" in read(1_802).stderr
