"""`X-System-Warning`: what will be refused from a date on, announced in answers before that.

A condition of SYSTEM_WARNINGS looks only at the request: so it tells nothing about a client. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from tokens.client_auth.authenticated import SECRET_METHODS, Method
from tokens.client_auth.client_secret import ClientSecretCredentials
from tokens.request.token_request import TokenRequest

HEADER = "X-System-Warning"
_TEXT = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7B\x7D-\x7E]{1,300}")  # | separates two warnings

Condition = Callable[[TokenRequest], bool]


def _method(sent: TokenRequest) -> Method | None:
    credentials = sent.credentials
    return credentials.method if isinstance(credentials, ClientSecretCredentials) else None


CONDITIONS: Mapping[str, Condition] = {
    "every_login": lambda sent: True,
    "client_secret": lambda sent: _method(sent) in SECRET_METHODS,
    "client_secret_basic": lambda sent: _method(sent) == Method.CLIENT_SECRET_BASIC,
    "scope_left_out": lambda sent: sent.scopes is None,
    "without_dpop": lambda sent: not sent.dpop,
}


def add_warnings(headers: dict[str, str], warnings: Iterable[Mapping[str, str]]) -> None:
    """Into the headers of an answer, after those that it has."""
    present = [headers[HEADER]] if HEADER in headers else []
    shown = [*present, *(f"From {warning['from']}: {warning['text']}" for warning in warnings)]
    if shown:
        headers[HEADER] = " | ".join(shown)


def warnings_for(
    sent: TokenRequest, warnings: Iterable[Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """Those that concern this request."""
    return [warning for warning in warnings if CONDITIONS[warning["condition"]](sent)]


def faults_of(warnings: Any) -> Iterator[str]:
    """What is wrong with the value of SYSTEM_WARNINGS, a line for each fault."""
    if not isinstance(warnings, list):
        yield "SYSTEM_WARNINGS is not a JSON list."
        return
    for number, warning in enumerate(warnings, 1):
        where = f"SYSTEM_WARNINGS, number {number}"
        if not isinstance(warning, dict) or set(warning) != {"text", "from", "condition"}:
            yield f"{where}: it does not have exactly text, from and condition."
            continue
        if not isinstance(warning["text"], str) or not _TEXT.fullmatch(warning["text"]):
            yield f"{where}: the text is not 1 to 300 characters of ASCII, without quotes and |."
        if not _is_date(warning["from"]):
            yield f"{where}: from is not a date such as 2027-01-31."
        if str(warning["condition"]) not in CONDITIONS:
            yield f"{where}: the condition is unknown. Choose from: {', '.join(CONDITIONS)}."


def _is_date(text: Any) -> bool:
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
