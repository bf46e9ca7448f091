"""No value shows a secret, a token, a hash or a private key in its repr (contract 5).

A repr ends up in logs, in tracebacks and in the messages of failed tests.
"""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import identity
import taxpayers
import tokens

# Fields of these names, if they hold text or bytes, and every private key.
SECRET_FIELDS = {
    *("client_secret", "lookup", "secret", "password", "staff_password"),
    *("body", "query_string", "authorization", "encoded", "token", "access_token"),
    *("assertion", "client_cert", "escaped_pem", "dpop", "signature", "signed"),
}
TEXTS: tuple[Any, ...] = (str, bytes, str | None, bytes | None)
MARKER = "nobody-may-see-this"
# Programs, not modules: importing one runs it.
_PROGRAMS = ("identity.wsgi", "identity.asgi")


def modules() -> Iterator[Any]:
    for package in (identity, tokens, taxpayers):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name not in _PROGRAMS:
                yield importlib.import_module(found.name)


def secret_fields(kind: Any) -> Iterator[str]:
    for field in dataclasses.fields(kind):
        is_secret = field.name in SECRET_FIELDS and field.type in TEXTS
        if is_secret or field.name == "private_key":
            yield field.name


KINDS = {
    f"{kind.__module__}.{kind.__name__}": kind
    for module in modules()
    for kind in vars(module).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and [*secret_fields(kind)]
}


def test_the_values_that_hold_secrets_are_found() -> None:
    assert {name.rpartition(".")[2] for name in KINDS} >= {
        *("Answer", "ClientSecretCredentials", "Credentials", "FactsQuery", "IssuedLogin", "Key"),
        *("RawTokenRequest", "SavedCredentials", "SignedToken"),
    }


@pytest.mark.parametrize("name", KINDS)
def test_a_value_does_not_show_its_secret(name: str) -> None:
    kind = KINDS[name]
    value = object.__new__(kind)
    for field in dataclasses.fields(kind):
        object.__setattr__(value, field.name, None)
    for secret in secret_fields(kind):
        object.__setattr__(value, secret, MARKER)
    for text in (repr(value), str(value), f"{value}", repr([value]), repr({"value": value})):
        assert MARKER not in text
