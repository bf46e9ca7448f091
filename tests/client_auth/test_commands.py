"""The commands for system users that log in with a private key (contract 6)."""

import io
from pathlib import Path
from typing import Any

import pytest

from taxpayers.models import SystemUser
from tests.client_auth.key_erp import KeyErp, jwks, new_key_erp, new_pair
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db

TIN = "C1234567890"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_issue_credentials_with_keys_issues_no_secret(file: Path) -> None:
    TaxpayerFactory.create(tin=TIN)
    pair = new_pair()
    file.write_text(jwks(pair))
    answer = json_output_of(
        *("issue_credentials", TIN, "--name", "ERP", "--jwks", str(file)),
        *("--secret-expires", "2099-12-31"),
    )
    assert "client_secret" not in answer
    assert answer["keys"] == [{"kid": pair.kid, "expires_at": "2099-12-31T15:59:59.999999Z"}]
    assert answer["token_endpoint_auth_method"] == "private_key_jwt"
    erp = KeyErp(SystemUser.objects.get(client_id=answer["client_id"]), pair)
    assert erp.login(erp.assertion(aud=answer["issuer"])).status_code == 200


def test_issue_credentials_shows_what_the_erp_system_needs(file: Path) -> None:
    TaxpayerFactory.create(tin=TIN)
    file.write_text(jwks(new_pair(kid="k1")))
    text = output_of("issue_credentials", TIN, "--name", "ERP", "--jwks", str(file))
    assert "key            k1 (until " in text
    assert "aud            http://127.0.0.1:8000\n" in text
    assert "client_secret  " not in text


def test_the_login_method_is_changed_there_and_back(file: Path) -> None:
    erp, pair = new_erp(), new_pair()
    file.write_text(jwks(pair))
    there = json_output_of(
        *("change_system_user", erp.client_id, "--auth-method", "private_key_jwt"),
        *("--jwks", str(file), "--reason", "asked by letter"),
    )
    assert there["auth_method"] == "private_key_jwt"
    assert erp.login().status_code == 400
    assert KeyErp(erp.system_user, pair).login().status_code == 200
    back = json_output_of("change_system_user", erp.client_id, "--auth-method", "client_secret")
    assert back["auth_method"] == "client_secret"
    assert KeyErp(erp.system_user, pair).login().status_code == 400
    assert Erp(erp.client_id, back["client_secret"]).login().status_code == 200


def test_a_key_is_added_and_the_old_one_removed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    erp, new = new_key_erp(), new_pair()
    monkeypatch.setattr("sys.stdin", io.StringIO(jwks(new)))
    added = json_output_of("register_client_key", erp.client_id, "-", "--expires", "2099-12-31")
    assert [key["kid"] for key in added["keys"]] == [erp.pair.kid, new.kid]
    removed = output_of("revoke_secret", erp.client_id, erp.pair.kid)
    assert f"It still has …{new.kid[-4:]}." in removed
    assert erp.login(erp.assertion(pair=new)).status_code == 200
    assert erp.login().status_code == 400
    last = output_of("revoke_secret", erp.client_id, new.kid[-4:])
    assert "It has no other live key, so it cannot log in." in last
    assert f"manage.py register_client_key {erp.client_id} FILE" in last


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--auth-method", "private_key_jwt"), "--auth-method private_key_jwt and --jwks belong"),
        (("--jwks", "{file}"), "--auth-method private_key_jwt and --jwks belong together"),
        (("--auth-method", "none"), "invalid choice: 'none'"),
        (("--jwks", "/nowhere"), "'/nowhere' cannot be read: No such file or directory."),
        (("--auth-method", "client_secret"), "logs in with a secret already"),
        (("--auth-method", "private_key_jwt", "--jwks", "{file}"), "This is no public key"),
    ],
)
def test_a_wrong_argument_is_one_line(file: Path, arguments: tuple[str, ...], line: str) -> None:
    file.write_text("nothing")
    erp = new_erp()
    given: Any = [argument.format(file=file) for argument in arguments]
    assert line in error_of("change_system_user", erp.client_id, *given)
    assert erp.login().status_code == 200


def test_a_file_that_is_no_text_is_named(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    assert "it is not a text file" in error_of(
        "register_client_key", new_key_erp().client_id, str(file)
    )
