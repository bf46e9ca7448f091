"""The credentials of a request, whichever method of client authentication it uses. Pure.

One line here for each thing that a method must be able to do.
"""

from collections.abc import Mapping
from datetime import datetime

from taxpayers.credentials import Environment
from taxpayers.facts.values import Facts
from tokens.client_auth import client_secret, private_key_jwt
from tokens.client_auth.assertion import (
    ASSERTION,
    ASSERTION_TYPE,
    JWT_BEARER,
    ClientAssertion,
    SentAssertion,
    read_assertion,
)
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.client_auth.client_secret import ClientSecretCredentials, check_client_id
from tokens.endpoint.form import malformed

SentCredentials = ClientSecretCredentials | SentAssertion
Credentials = ClientSecretCredentials | ClientAssertion


def read_credentials(form: Mapping[str, str], authorization: str) -> SentCredentials:
    """The credentials as sent. Raises Refused if they use two methods, or none that is known."""
    sent = client_secret.read_credentials(form, authorization)
    if ASSERTION not in form and ASSERTION_TYPE not in form:
        return sent
    if sent.client_secret:
        raise malformed("both a client_secret and a client_assertion are sent")
    if form.get(ASSERTION_TYPE, JWT_BEARER) != JWT_BEARER:
        raise malformed(f"client_assertion_type must be {JWT_BEARER}")
    return SentAssertion(sent.client_id, form.get(ASSERTION, ""), form.get(ASSERTION_TYPE, ""))


def check_form(sent: SentCredentials, environment: Environment, issuer: str) -> Credentials:
    """The same, in a form that could be right: no query. Raises Refused."""
    if isinstance(sent, ClientSecretCredentials):
        client_secret.check_form(sent, environment)
        return sent
    assertion = read_assertion(sent, issuer)
    check_client_id(assertion.client_id, environment)
    return assertion


def authenticate(
    credentials: Credentials, facts: Facts | None, at: datetime
) -> AuthenticatedClient:
    """The client that these credentials belong to; `facts` are those that they were read with.

    Raises Refused.
    """
    if isinstance(credentials, ClientAssertion):
        return private_key_jwt.authenticate(credentials, facts, at)
    return client_secret.authenticate(credentials, facts)
