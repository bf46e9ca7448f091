"""The credentials of a request, whichever method of client authentication it uses. Pure.

One line here for each thing that a method must be able to do.
"""

from collections.abc import Mapping
from datetime import datetime

from taxpayers.credentials import Environment
from taxpayers.facts.values import ASSERTION, Facts, FactsQuery
from taxpayers.identifiers import TaxpayerId
from tokens.calls import AssertionUse
from tokens.client_auth import client_secret, private_key_jwt, tls_client_auth
from tokens.client_auth.assertion import (
    ASSERTION_TYPE,
    JWT_BEARER,
    ClientAssertion,
    SentAssertion,
    read_assertion,
)
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.client_auth.certificate import CertificateHeaders, read_certificate
from tokens.form_encoding import malformed

SentCredentials = client_secret.SentSecret | SentAssertion | tls_client_auth.SentCertificate
CheckedCredentials = (
    client_secret.ClientSecretCredentials | ClientAssertion | tls_client_auth.CertificateCredentials
)


def read_credentials(
    form: Mapping[str, str], authorization: str, certificate: CertificateHeaders | None = None
) -> SentCredentials:
    """The credentials as sent. Raises Refused if they use two methods, or none that is known.

    A certificate is one where nothing else is sent: with a secret it proves nothing more.
    """
    sent = client_secret.read_credentials(form, authorization)
    if ASSERTION not in form and ASSERTION_TYPE not in form:
        if certificate and not sent.client_secret and sent.method is Method.CLIENT_SECRET_POST:
            return tls_client_auth.SentCertificate(sent.client_id, certificate)
        return sent
    if sent.client_secret:
        raise malformed("both a client_secret and a client_assertion are sent")
    if form.get(ASSERTION_TYPE, JWT_BEARER) != JWT_BEARER:
        raise malformed(f"client_assertion_type must be {JWT_BEARER}")
    return SentAssertion(sent.client_id, form.get(ASSERTION, ""), form.get(ASSERTION_TYPE, ""))


def check_form(sent: SentCredentials, environment: Environment, issuer: str) -> CheckedCredentials:
    """The same, in a form that could be right: no query. Raises Refused."""
    if isinstance(sent, client_secret.SentSecret):
        return client_secret.check_form(sent, environment)
    if isinstance(sent, tls_client_auth.SentCertificate):
        client_secret.check_client_id(sent.client_id, environment)
        certificate = read_certificate(sent.headers)
        return tls_client_auth.CertificateCredentials(sent.client_id, certificate)
    assertion = read_assertion(sent, issuer)
    client_secret.check_client_id(assertion.client_id, environment)
    return assertion


def facts_query(credentials: CheckedCredentials, on_behalf_of: TaxpayerId | None) -> FactsQuery:
    """Which facts of the registry these credentials need."""
    return FactsQuery(credentials.client_id, credentials.lookup, on_behalf_of)


def authenticate(
    credentials: CheckedCredentials, facts: Facts | None, at: datetime
) -> AuthenticatedClient:
    """The client that these credentials belong to, by the facts read with them. Raises Refused."""
    if isinstance(credentials, ClientAssertion):
        return private_key_jwt.authenticate(credentials, facts, at)
    if isinstance(credentials, tls_client_auth.CertificateCredentials):
        return tls_client_auth.authenticate(credentials, facts, at)
    return client_secret.authenticate(credentials, facts)


def use_of(credentials: CheckedCredentials) -> AssertionUse | None:
    """None for a secret. To be stored after the signature was verified, and not before."""
    if not isinstance(credentials, ClientAssertion):
        return None
    return AssertionUse(credentials.use_id, private_key_jwt.last_moment(credentials))
