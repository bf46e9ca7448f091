"""No repr shows a secret, a token, a hash or a private key (contract 5), and no value changes."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any, get_type_hints

import pytest
from django.apps import apps
from django.db.models import ForeignKey, Model

import einvoicing_tokens
import identity
import taxpayers
import tokens
from taxpayers.value import Value

# Fields of these names, if they hold text or bytes, and every private key.
SECRET_FIELDS = {
    *("client_secret", "lookup", "secret", "password", "staff_password"),
    *("body", "query_string", "authorization", "encoded", "token", "access_token"),
    *("assertion", "client_cert", "escaped_pem", "dpop", "signature", "signed", "proofs"),
}
TEXTS: tuple[Any, ...] = (str, bytes, str | None, bytes | None, Sequence[str | None])
SECRET_COLUMNS = SECRET_FIELDS | {"former_secret", "private_key", "secrets_used", "content"}
OURS = ("identity.", "tokens.", "taxpayers.")
MARKER = "nobody-may-see-this"
# Each stage of a login, and what it is made of (docs/architecture.md).
STAGES = (
    *("taxpayers.credentials.", "taxpayers.identifiers.", "taxpayers.rules.", "taxpayers.facts."),
    *("taxpayers.client_keys.", "taxpayers.certificates.", "tokens.access_tokens."),
    *("tokens.answers.", "tokens.calls.", "tokens.client_auth.", "tokens.dpop."),
    *("tokens.explanation.", "tokens.keys.", "tokens.operations.", "tokens.rate_limits."),
    *("tokens.refusals.", "tokens.request."),
)
# Programs, not modules: importing one runs it.
_PROGRAMS = ("identity.wsgi", "identity.asgi")


def modules() -> Iterator[Any]:
    for package in (identity, tokens, taxpayers, einvoicing_tokens):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name not in _PROGRAMS:
                yield importlib.import_module(found.name)


def types_of_fields(kind: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        return {field.name: field.type for field in dataclasses.fields(kind)}
    return get_type_hints(kind) if issubclass(kind, Value) else {}


def secret_fields(kind: Any) -> Iterator[str]:
    for name, found in types_of_fields(kind).items():
        if (name in SECRET_FIELDS and found in TEXTS) or name == "private_key":
            yield name


TYPES = {
    f"{kind.__module__}.{kind.__name__}": kind
    for module in modules()
    for kind in vars(module).values()
    if isinstance(kind, type)
}
KINDS = {name: kind for name, kind in TYPES.items() if [*secret_fields(kind)]}
VALUES = {
    name: kind
    for name, kind in TYPES.items()
    if name.startswith(STAGES) and (dataclasses.is_dataclass(kind) or issubclass(kind, Value))
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_cannot_be_changed(name: str) -> None:
    value: Any = VALUES[name]
    is_dataclass = dataclasses.is_dataclass(value)
    assert (value.__dataclass_params__ if is_dataclass else value.__struct_config__).frozen


def test_the_values_that_hold_secrets_are_found() -> None:
    assert {name.rpartition(".")[2] for name in KINDS} >= {
        *("Answer", "ClientSecretCredentials", "Credentials", "FactsQuery", "IssuedLogin", "Key"),
        *("RawTokenRequest", "SavedCredentials", "SentSecret", "SignedToken"),
    }


@pytest.mark.parametrize("name", KINDS)
def test_a_value_does_not_show_its_secret(name: str) -> None:
    kind = KINDS[name]
    fields = dict.fromkeys(types_of_fields(kind)) | dict.fromkeys(secret_fields(kind), MARKER)
    value = _made(kind, fields)
    for text in (repr(value), str(value), f"{value}", repr([value]), repr({"value": value})):
        assert MARKER not in text


def _made(kind: Any, fields: dict[str, Any]) -> Any:
    if issubclass(kind, Value):
        return kind(**fields)
    value = object.__new__(kind)  # without what its constructor checks
    for name, each in fields.items():
        object.__setattr__(value, name, each)
    return value


@pytest.mark.parametrize(
    "model",
    [
        one
        for one in apps.get_models()
        if one.__module__.startswith(("identity", "tokens", "taxpayers"))
    ],
    ids=lambda model: model.__name__,
)
def test_a_record_does_not_show_its_secret(model: type[Model]) -> None:
    row = _record(model)
    assert type(str(row)) is str
    assert MARKER not in repr(row)


def _record(model: type[Model]) -> Model:
    """One that is not stored, with those that it belongs to."""
    row = model()
    for field in model._meta.concrete_fields:
        if field.name in SECRET_COLUMNS:
            setattr(row, field.name, MARKER)
        elif isinstance(field, ForeignKey) and not field.null:
            setattr(row, field.name, _record(field.related_model))
    return row
