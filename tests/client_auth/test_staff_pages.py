"""Staff see how a system user logs in, change it, and register and remove keys and certificates."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers.models import Change, Credential, SystemUser
from tests.certificates.certificate_erp import CertificateErp, certificate
from tests.client_auth.key_erp import KeyErp, jwks, new_pair
from tests.client_auth.kinds import CERTIFICATE, KEY, SECRET, Kind
from tests.support import make
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import Erp
from tests.support.staff import errors_of, opened, page_url, task_url, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("takes_certificates")]


@pytest.fixture(params=[KEY, CERTIFICATE], ids=["key", "certificate"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def register(kind: Kind, user: SystemUser) -> str:
    return task_url(user, f"register_client_{kind.name.value}")


def _file(content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("erp.pem", content)


@pytest.mark.parametrize("is_uploaded", [True, False], ids=["a file", "a text"])
def test_a_client_is_registered_as_such_and_no_secret_is_issued(
    officer: Client, kind: Kind, is_uploaded: bool
) -> None:
    pair, issued = new_pair(), certificate()
    text = jwks(pair) if kind is KEY else issued.pem
    form = {
        "taxpayer": make.taxpayer().tin,
        "name": "ERP",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": "12",
        "kind": kind.name.value,
        "reason": "A new ERP system",
    }
    url = task_url(SystemUser, "issue_credentials")
    wrong: dict[str, Any]
    for wrong in ({}, {"text": text, "file": _file(b"x")}, {"file": _file(b"\xff")}):
        assert errors_of(officer.post(url, form | wrong))
    assert errors_of(officer.post(url, form | {"kind": "secret", "text": text}))
    sent = {"file": _file(text.encode())} if is_uploaded else {"text": text}
    response = officer.post(url, form | sent, follow=True)
    user = SystemUser.objects.get()
    assert f"ERP is registered. Its client ID is {user.client_id}." in text_of(response)
    (credential,) = user.credentials.all()
    assert credential.kind == kind.name
    erp = KeyErp(user, pair) if kind is KEY else CertificateErp(user, issued)
    assert erp.login().status_code == 200
    change = Change.objects.latest("pk")
    assert (change.action, change.reason) == ("issue_credentials", "A new ERP system")


def test_a_change_to_a_secret_shows_it_once(officer: Client, kind: Kind, erp: Any) -> None:
    url = task_url(erp.system_user, "use_client_secret")
    form = opened(officer, url) | {"expires": "", "reason": "no keys"}
    response = officer.post(url, form)
    (secret,) = set(re.findall(r"cs_test_[0-9A-Za-z]{49}", response.content.decode()))
    assert Erp(erp.client_id, secret).login().status_code == 200
    assert erp.login().status_code == 400
    assert secret not in officer.post(url, form, follow=True).content.decode()


def test_a_private_key_is_refused_and_not_shown_again(
    officer: Client, kind: Kind, erp: Any, tmp_path: Path
) -> None:
    if kind is KEY:
        jwk = new_pair().private_jwk
        hidden, form = jwk["d"], {"keys": json.dumps(jwk)}
    else:
        private = Path(certificate().write(tmp_path, "erp")[1]).read_text()
        hidden, form = private.splitlines()[1], {"certificate": private}
    response = officer.post(register(kind, erp.system_user), form | {"reason": "x"})
    assert "PRIVATE" in errors_of(response)
    assert hidden not in response.content.decode()
    assert hidden not in json.dumps(list(Change.objects.values()), default=str)


def test_the_last_one_that_ends_soon_is_a_warning_and_replaced_by_its_kind(
    officer: Client, kind: Kind, erp: Any
) -> None:
    Credential.objects.update(expires_at=timezone.now() + timedelta(days=3))
    assert "The last valid one, " in text_of(officer.get(page_url(erp.system_user)))
    soon, name = officer.get(reverse("admin:ending_soon")), kind.name.value
    assert f" {name.capitalize()} {erp.system_user}" in text_of(soon)
    assert "Issue a new secret" not in text_of(soon)
    ((_row, button),) = soon.context["rows"]
    assert str(button.title) == f"Register a new {name}"
    assert officer.get(button.url).status_code == 200


TIN, PAIR = "C1234567890", new_pair(kid="k1")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"jwks": jwks(PAIR), "certificate": certificate().pem, "nothing": "nothing"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


def test_issue_credentials_with_keys_issues_no_secret(files: dict[str, str]) -> None:
    make.taxpayer(tin=TIN)
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
        ("tls_client_auth", ("--certificate", "{nothing}"), "This is no certificate"),
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
