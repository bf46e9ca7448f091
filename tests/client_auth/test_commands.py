"""The commands for system users that log in with a private key or a certificate (contract 6)."""

from pathlib import Path
from typing import Any

import pytest

from taxpayers.models import SystemUser
from tests.certificates.certificate_erp import CertificateErp, certificate
from tests.client_auth.key_erp import KeyErp, jwks, new_pair
from tests.client_auth.kinds import SECRET
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import Erp
from tests.support.factories import TaxpayerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("takes_certificates")]

TIN, PAIR = "C1234567890", new_pair(kid="k1")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"jwks": jwks(PAIR), "certificate": certificate().pem, "nothing": "nothing"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def test_issue_credentials_with_keys_issues_no_secret(files: dict[str, str]) -> None:
    TaxpayerFactory.create(tin=TIN)
    issue = ("issue_credentials", TIN, "--jwks", files["jwks"], "--name")
    answer = json_output_of(*issue, "ERP", "--secret-expires", "2099-12-31")
    assert "client_secret" not in answer
    assert answer["keys"] == [{"kid": "k1", "expires_at": "2099-12-31T15:59:59.999999Z"}]
    assert answer["login_method"] == "private_key_jwt"
    erp = KeyErp(SystemUser.objects.get(client_id=answer["client_id"]), PAIR)
    assert erp.login(erp.assertion(aud=answer["issuer"])).status_code == 200
    text = output_of(*issue, "another")
    assert "key            k1 (until " in text
    assert "aud            http://127.0.0.1:8000\n" in text
    assert "client_secret  " not in text


@pytest.mark.parametrize("method", ["private_key_jwt", "tls_client_auth"])
def test_the_login_method_is_changed_there_and_back(method: str, files: dict[str, str]) -> None:
    erp, option = SECRET.new(), "jwks" if method == "private_key_jwt" else "certificate"
    change = ("change_system_user", erp.client_id, "--auth-method")
    there = json_output_of(*change, method, f"--{option}", files[option], "--reason", "a letter")
    assert there["login_method"] == method
    assert erp.login().status_code == 400
    user = erp.system_user
    new = KeyErp(user, PAIR) if option == "jwks" else CertificateErp(user, certificate())
    assert new.login().status_code == 200
    back = json_output_of(*change, "client_secret")
    assert back["login_method"] == "client_secret"
    assert new.login().status_code == 400
    assert Erp(erp.client_id, back["client_secret"]).login().status_code == 200


@pytest.mark.parametrize(
    ("method", "options", "line"),
    [
        ("private_key_jwt", (), "--auth-method private_key_jwt and --jwks belong together"),
        ("", ("--jwks", "{jwks}"), "--auth-method private_key_jwt and --jwks belong together"),
        ("private_key_jwt", ("--certificate", "{certificate}"), "and --jwks belong together"),
        ("tls_client_auth", (), "--auth-method tls_client_auth and --certificate"),
        ("", ("--certificate", "{certificate}"), "--auth-method tls_client_auth and --certificate"),
        ("none", (), "invalid choice: 'none'"),
        ("", ("--jwks", "/nowhere"), "'/nowhere' cannot be read: No such file or directory."),
        ("tls_client_auth", ("--certificate", "/nowhere"), "cannot be read"),
        ("client_secret", (), "logs in with a secret already"),
        ("private_key_jwt", ("--jwks", "{nothing}"), "This is no public key"),
        ("tls_client_auth", ("--san-dns", "erp"), "no complete host name without wildcards"),
        ("tls_client_auth", ("--san-dns", "a.b", "--san-uri", "a:b"), "not allowed with argument"),
    ],
)
def test_a_wrong_argument_is_one_line(
    files: dict[str, str], method: str, options: tuple[str, ...], line: str
) -> None:
    erp = SECRET.new()
    given: Any = [option.format(**files) for option in options]
    chosen = ("--auth-method", method) if method else ()
    assert line in error_of("change_system_user", erp.client_id, *chosen, *given)
    assert erp.login().status_code == 200
