"""Access tokens of the e-invoicing identity service, verified in a protected API.

    tokens = TokenVerifier("https://id.example.org", audience="InvoicingAPI")
    token = tokens.authenticate(request.headers.get("Authorization"))
    token.require(scope="InvoicingAPI", permission="documents:submit")

Whatever is refused is a `TokenError` with the answer to give: status, headers and body. Adapters
are in `einvoicing_tokens.django`, `einvoicing_tokens.fastapi` and `einvoicing_tokens.flask`.
"""

from einvoicing_tokens.access_token import AccessToken, Taxpayer
from einvoicing_tokens.certificates import ClientCertificates
from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.dpop.used_proofs import UsedProofs
from einvoicing_tokens.errors import (
    InsufficientScope,
    InvalidProof,
    InvalidToken,
    TokenError,
    Unavailable,
)
from einvoicing_tokens.published import Status
from einvoicing_tokens.verifier import TokenVerifier

__all__ = [
    "AccessToken",
    "ClientCertificates",
    "InsufficientScope",
    "InvalidProof",
    "InvalidToken",
    "ProvedRequest",
    "Status",
    "Taxpayer",
    "TokenError",
    "TokenVerifier",
    "Unavailable",
    "UsedProofs",
]
