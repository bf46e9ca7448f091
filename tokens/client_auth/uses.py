"""The one use of a client assertion, as it is stored (RFC 7523 section 3, point 7)."""

from tokens.calls import AssertionUse
from tokens.client_auth.assertion import ClientAssertion
from tokens.client_auth.methods import CheckedCredentials
from tokens.client_auth.private_key_jwt import last_moment


def use_of(credentials: CheckedCredentials) -> AssertionUse | None:
    """None for a secret. To be stored after the signature was verified, and not before."""
    if not isinstance(credentials, ClientAssertion):
        return None
    return AssertionUse(credentials.use_id, last_moment(credentials))
