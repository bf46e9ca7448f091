"""What a token is bound to, so that only its client can use it (RFC 9449, RFC 8705). Pure."""

from enum import StrEnum

from taxpayers.value import Value


class TokenBinding(StrEnum):
    """What every token of a system user must be bound to; chosen by staff for each one."""

    BEARER = ""  # to nothing: anybody who has the token can use it
    DPOP = "dpop"  # to a key, of which the client proves possession with a header (RFC 9449)
    TLS = "tls"  # to the client's certificate (RFC 8705 section 3)


class Confirmation(Value):
    """What a client has proved to possess, and its token is bound to (RFC 7800 section 3.1)."""

    binding: str = TokenBinding.BEARER  # a key, a certificate, or nothing
    thumbprint: str = ""  # SHA-256 in base64url (RFC 7638, RFC 8705 3.1); empty: not bound


UNBOUND = Confirmation()
