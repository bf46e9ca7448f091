"""A block while the database is away: a signed file, lists, logins, and its end (contract 2)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management.base import CommandError
from django.db.models import F
from pytest_django.fixtures import Settings

from taxpayers.models import StatusIndex, SystemUser
from taxpayers.services import Author, block_system_user, unblock_system_user
from taxpayers.sql import fetch_through_django
from tests.introspection.api import claims_of, new_api, token_of
from tests.status_lists.reader import bits_of, get, read_list, reference_of
from tests.support.answers import body_of
from tests.support.command_line import json_output_of
from tests.support.erp import Erp, description_of, new_erp
from tests.support.moments import now
from tests.support.outages import database_out_of_reach
from tests.support.queries import statements_sent
from tokens.status_lists import offline_blocks, owners
from tokens.status_lists.offline_blocks import (
    OfflineBlock,
    forget_offline_blocks,
    public_part,
    signed,
)
from tokens.status_lists.publication import forget_status_lists, status_lists

pytestmark = pytest.mark.django_db

KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
WHO: dict[str, Any] = {"by": Author("officer"), "reason": "a test"}


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    settings.OFFLINE_BLOCK_DIR = tmp_path / "offline-blocks"
    settings.OFFLINE_BLOCK_DIR.mkdir()
    settings.OFFLINE_BLOCK_KEYS = [public_part(OTHER_KEY)[::-1], public_part(KEY)]
    forget_status_lists()
    forget_offline_blocks()
    yield settings.OFFLINE_BLOCK_DIR
    forget_offline_blocks()


def text(*client_ids: str, key: Ed25519PrivateKey = KEY, seconds: float = 0, **others: Any) -> str:
    at = now() + timedelta(seconds=seconds)
    issuer = others.pop("issuer", "http://127.0.0.1:8000")
    return signed(OfflineBlock(client_ids, at, "op", "stolen"), key, issuer)


def look() -> None:
    with database_out_of_reach(), pytest.raises(Exception, match="closed the connection"):
        status_lists().look()


def state(token: str) -> tuple[bool, int]:
    """Whether its bit is set in the list as it is published now, and the list's `iat`."""
    uri, idx = reference_of(token)
    with database_out_of_reach():
        claims = read_list(uri, get("/status/0"))
    return bool(bits_of(claims)[idx // 8] >> idx % 8 & 1), claims["iat"]


def test_a_block_is_in_the_lists_at_once_and_ends_with_that_of_the_registry(
    erp: Erp, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, other, api = token_of(erp), token_of(new_erp()), new_api()
    status_lists().look()
    before = state(token)
    (folder / "1.jwt").write_text(text(erp.client_id))
    look()
    assert state(token) == (True, before[1]), "with its old date: its other facts are no newer"
    assert state(other) == (False, before[1])
    # The database is back before the registry has the block.
    status_lists().look()
    assert state(token)[0]
    assert body_of(api.introspect(token)) == {"active": False}
    assert body_of(api.introspect(other))["active"]
    assert "was blocked" in description_of(erp.login())
    assert new_erp().login().status_code == 200
    block_system_user(system_user=erp.system_user, at=now(), **WHO)
    unblock_system_user(system_user=erp.system_user, at=now(), **WHO)
    status_lists().look()
    assert "was blocked" in description_of(erp.login()), "until all lists have it"
    monkeypatch.setattr(offline_blocks, "_LISTED_SECONDS", -1.0)
    status_lists().look()
    new = token_of(erp)
    status_lists().look()
    assert (state(token)[0], state(new)[0]) == (True, False)


def test_a_file_that_is_taken_away_takes_the_block_away(erp: Erp, folder: Path) -> None:
    token = token_of(erp)
    status_lists().look()
    (folder / "1.jwt").write_text(text(erp.client_id))
    look()
    assert state(token)[0]
    (folder / "1.jwt").unlink()
    look()
    assert not state(token)[0]


def resigned(**changes: Any) -> str:
    return jwt.encode(claims_of(text("x")) | changes, KEY, "EdDSA", {"typ": "offline-block+jwt"})


def altered(client_id: str) -> str:
    head, _payload, signature = text(new_erp().client_id).split(".")
    return ".".join([head, text(client_id).split(".")[1], signature])


REFUSED: dict[str, Any] = {
    "unknown key": (lambda c: text(c, key=OTHER_KEY), "of no key"),
    "another's content": (altered, "of no key"),
    "no signature": (lambda c: text(c).rpartition(".")[0] + ".", "of no key"),
    "from yesterday": (lambda c: text(c, seconds=-86_401), "make a new one"),
    "of tomorrow": (lambda c: text(c, seconds=90), "make a new one"),
    "of another service": (lambda c: text(c, issuer="https://id.example.org"), "is not for"),
    "another kind of JWT": (
        lambda c: jwt.encode({"client_ids": [c]}, KEY, "EdDSA", {"typ": "JWT"}),
        "no file of block_offline",
    ),
    "empty": (lambda c: "", "no file of block_offline"),
    "bytes": (lambda c: "\x00\x7f" * 999, "no file of block_offline"),
    "cut off": (lambda c: text(c)[:-8], ""),
    "no client": (lambda c: text(), "malformed"),
    "no client ID": (lambda c: text(c, c[:-1]), "malformed"),
    "a text of them": (lambda c: resigned(client_ids=c), "malformed"),
    "no date": (lambda c: resigned(client_ids=[c], iat="now"), "malformed"),
    "an endless date": (lambda c: resigned(client_ids=[c], iat=1e300), "malformed"),
    "a list of numbers": (lambda c: resigned(client_ids=[1]), "malformed"),
    "too many": (lambda c: resigned(client_ids=[c] * 10_001), "malformed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_not_right_blocks_nothing_and_is_named_once(
    erp: Erp, folder: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, why = REFUSED[case]
    token, good = token_of(erp), new_erp()
    status_lists().look()
    (folder / "1.jwt").write_text(make(erp.client_id))
    (folder / "2.jwt").write_text(text(good.client_id))
    look()
    look()
    assert not state(token)[0]
    assert erp.login().status_code == 200
    (told,) = [one for one in caplog.messages if "refused: 1.jwt" in one]
    assert why in told
    assert good.login().status_code == 400, "the next file counts all the same"


def test_the_owner_of_each_index_is_known_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "_ROWS", 2)
    erps = [new_erp() for _ in range(5)]
    indexes = [reference_of(token_of(erp))[1] for erp in erps]
    known, at = owners.Owners(), now()
    known.read(at)
    assert [known.indexes_of([erp.client_id]) for erp in erps] == [{one} for one in indexes]
    assert known.indexes_of([erp.client_id for erp in erps]) == set(indexes)
    # An index that is used again has another owner; a second one of a client is added.
    StatusIndex.objects.filter(pk=indexes[0]).update(
        system_user_id=SystemUser.objects.get(client_id=erps[1].client_id).pk,
        secret_id=99,
        taken_at=at,
    )
    known.read(at)
    assert known.indexes_of([erps[1].client_id]) == set(indexes[:2])
    assert not known.indexes_of([erps[0].client_id])
    # One that was committed a little late, one that was committed very late.
    for number, seconds in ((3, 0.5), (4, 5)):
        StatusIndex.objects.filter(pk=indexes[number]).update(
            index=F("index") + 500, taken_at=at - timedelta(seconds=seconds)
        )
    with statements_sent() as sent:
        known.read(at)
    assert known.indexes_of([erps[3].client_id]) == {indexes[3], indexes[3] + 500}
    assert known.indexes_of([erps[4].client_id]) == {indexes[4]}
    assert len(sent) < 5
    later = at + timedelta(seconds=10)
    known.read(later)
    known.read(later)
    assert known.indexes_of([erps[4].client_id]) == {indexes[4], indexes[4] + 500}


def test_a_row_is_read_again_only_while_another_may_be_committed_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[int] = []

    def noting(*arguments: Any) -> Any:
        found = fetch_through_django(*arguments)
        rows.append(len(found))
        return found

    monkeypatch.setattr(owners, "fetch_through_django", noting)
    token_of(new_erp())
    known, at = owners.Owners(), StatusIndex.objects.get().taken_at
    for seconds in (0.0, 0.5, 3, 9, 11, 12, 22, 23, 33, 34):
        known.read(at + timedelta(seconds=seconds))
    assert rows == [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]


def test_without_a_key_no_owner_is_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OFFLINE_BLOCK_KEYS = []
    monkeypatch.delattr(owners.Owners, "read")
    status_lists().look()


def run(*arguments: str) -> Any:
    with database_out_of_reach():
        return json_output_of("block_offline", *arguments)


def test_the_command_needs_no_database(
    erp: Erp, folder: Path, settings: Settings, tmp_path: Path
) -> None:
    token, file = token_of(erp), str(tmp_path / "key.pem")
    status_lists().look()
    made = run("--new-key", file)
    assert Path(file).stat().st_mode & 0o777 == 0o600
    blocked = (erp.client_id, "--key", file, "--reason", "stolen")
    with pytest.raises(CommandError, match="would refuse this key"):
        run(*blocked)
    settings.OFFLINE_BLOCK_KEYS = [made["public_key"]]
    answer = run(*blocked)
    assert (answer["client_ids"], Path(answer["file"]).parent) == ([erp.client_id], folder)
    look()
    assert state(token)[0]


def test_the_command_refuses_what_nodes_would_refuse(erp: Erp, tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    run("--new-key", str(file))
    for arguments, why in (
        ((erp.client_id, "--key", str(file)), "--reason"),
        (("--key", str(file), "--reason", "x"), "client IDs"),
        ((erp.client_id[:-1], "--key", str(file), "--reason", "x"), "no client ID"),
        ((erp.client_id, "--key", str(tmp_path), "--reason", "x"), "Is a directory"),
        ((erp.client_id, "--key", __file__, "--reason", "x"), "no private key"),
        (("--new-key", str(file)), "File exists"),
    ):
        with pytest.raises(CommandError, match=why):
            run(*arguments)
