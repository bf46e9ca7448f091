"""What was decided, read or signed cannot be changed afterwards, and shows no secret."""

import importlib
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from tests.servers.processes import CHECKOUT

# Each stage of a login, and what it is made of (docs/architecture.md).
ROOMS = (
    *("taxpayers/credentials.py", "taxpayers/identifiers.py", "taxpayers/rules.py"),
    *("taxpayers/client_keys.py", "taxpayers/certificates", "taxpayers/facts"),
    *("tokens/access_tokens", "tokens/answers", "tokens/calls.py", "tokens/client_auth"),
    *("tokens/dpop", "tokens/explanation.py", "tokens/keys", "tokens/operations"),
    *("tokens/rate_limits", "tokens/refusals", "tokens/request"),
)
# Fields that a log line or an error page must not show.
HIDDEN = {
    "taxpayers.facts.values.FactsQuery": {"lookup"},
    "tokens.access_tokens.issuing.SignedToken": {"encoded"},
    "tokens.calls.TokenQuery": {"lookup"},
    "tokens.access_tokens.verification.AccessToken": {"claims"},
    "tokens.client_auth.assertion.ClientAssertion": {"jti", "signed", "signature"},
    "tokens.client_auth.assertion.SentAssertion": {"assertion"},
    "tokens.client_auth.certificate.CertificateHeaders": {"client_cert", "escaped_pem"},
    "tokens.client_auth.client_secret.ClientSecretCredentials": {"client_secret"},
    "tokens.client_auth.tls_client_auth.SentCertificate": {"headers"},
    "tokens.dpop.proof.Proof": {"jwk", "jti", "signed", "signature"},
    "tokens.request.token_request.RawTokenRequest": {
        "body",
        "query_string",
        "authorization",
        "dpop",
    },
    "tokens.request.token_request.TokenRequest": {"dpop"},
    "tokens.answers.response.Answer": {"body"},
    "tokens.operations.stages.IssuedLogin": {"body"},
    "tokens.keys.ring.Key": {"private_key"},
    "tokens.request.form.Form": {"values", "names"},
}


def values() -> dict[str, Any]:
    """Every dataclass of these rooms, by its name."""
    found = {}
    for room in ROOMS:
        path = CHECKOUT / room
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            module = ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
            for name, value in vars(importlib.import_module(module)).items():
                if is_dataclass(value) and getattr(value, "__module__", "") == module:
                    found[f"{module}.{name}"] = value
    return found


VALUES = values()


@pytest.mark.parametrize("name", VALUES)
def test_a_value_cannot_be_changed(name: str) -> None:
    assert VALUES[name].__dataclass_params__.frozen


def test_a_value_hides_its_secrets_and_nothing_else() -> None:
    hidden = {
        name: {field.name for field in fields(value) if not field.repr}
        for name, value in VALUES.items()
    }
    assert {name: names for name, names in hidden.items() if names} == HIDDEN
