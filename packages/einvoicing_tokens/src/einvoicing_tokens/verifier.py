"""Who calls a protected API, and may they go on? All checks in order (RFC 9068 section 4)."""

import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import urllib3

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.bearer import sent_token
from einvoicing_tokens.certificates import ClientCertificates
from einvoicing_tokens.claims import NOT_OURS, access_token_of, check_time
from einvoicing_tokens.dpop.binding import BindingCheck
from einvoicing_tokens.dpop.proof import ProvedRequest
from einvoicing_tokens.dpop.used_proofs import UsedProofs
from einvoicing_tokens.errors import InvalidToken
from einvoicing_tokens.issuer.clock import Clock
from einvoicing_tokens.issuer.folder import Folder
from einvoicing_tokens.issuer.http_client import HttpClient
from einvoicing_tokens.issuer.source import Source
from einvoicing_tokens.look_ahead import LookAhead
from einvoicing_tokens.published import Published, Status
from einvoicing_tokens.remembered import Remembered
from einvoicing_tokens.signatures import NotVerified, verified
from einvoicing_tokens.status.introspection import Introspection

TYPES = ("at+jwt", "application/at+jwt")  # RFC 9068 section 4
REFUSE_SECONDS = 10.0  # with on_outage="refuse": so old may a list be
_MAX_LENGTH = 16_384  # of a token; those of the service have about 1,000 characters
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class TokenVerifier:
    """Verifies the access tokens of one issuer for one audience. One for each process is enough.

    Threads may share it; nothing is fetched before the first token comes. From then on a thread
    fetches keys and lists before they are too old (`look_ahead=False`: requests do). While the
    service is away, the last lists and keys are used as long as they allow, 30 minutes by default;
    with `on_outage="refuse"` for 10 seconds. In `folder`, which must be of this API only, they
    outlive a restart. `on_status` gets the `Status` every 5 seconds, for metrics.

    With `introspect_as`, the id and secret of a registered protected API, the service is asked
    about each token; without, the status lists are read. `pool` makes the connections, for a proxy
    or a private certificate authority.

    `address` is the one that clients call this API at, for example `https://api.example.org`. With
    it, tokens that are bound to a key of their client are accepted together with a proof (DPoP, RFC
    9449); `used_proofs` is where the uses of proofs are stored: by default in this process. With
    `certificates`, tokens that are bound to a certificate are accepted from clients that connected
    with it (RFC 8705). All other bound tokens are refused.

    Raises ValueError without an audience, and for an issuer or an address that is not an https
    address (http on this machine) without a slash at its end.
    """

    def __init__(
        self,
        issuer: str,
        *,
        audience: str,
        introspect_as: tuple[str, str] | None = None,
        address: str | None = None,
        used_proofs: UsedProofs | None = None,
        certificates: ClientCertificates | None = None,
        pool: urllib3.PoolManager | None = None,
        clock: Clock | None = None,
        folder: str | PathLike[str] | None = None,
        on_outage: Literal["horizon", "refuse"] = "horizon",
        on_status: Callable[[Status], None] | None = None,
        look_ahead: bool = True,
    ) -> None:
        _check_address(issuer, "issuer: give the AUTH_URL of the identity service")
        if address is not None:
            _check_address(address, "address of an API: give the one that clients call")
        self._certificates = certificates
        self._binding = BindingCheck(
            address, used_proofs, takes_certificates=certificates is not None
        )
        if not audience:
            raise ValueError("audience is empty: give the one of this API, as InvoicingAPI.")
        self._issuer, self._audience, self._clock = issuer, audience, clock or Clock()
        self._known: Remembered[tuple[str, AccessToken]] = Remembered()
        http = HttpClient(pool)
        source = Source(http, self._clock, Folder(Path(folder)) if folder is not None else None)
        most_seconds = math.inf if on_outage == "horizon" else REFUSE_SECONDS
        self._published = Published(issuer, source, most_seconds)
        self._look_ahead = LookAhead(self._published, on_status) if look_ahead else None
        self._introspection = (
            Introspection(self._published.metadata, http, introspect_as) if introspect_as else None
        )

    def authenticate(
        self, *authorization: str | None, request: ProvedRequest | None = None
    ) -> AccessToken:
        """The token of a request, by its header `Authorization`: give all that it has.

        `request` is needed for tokens that are bound to a key or certificate. Raises TokenError.
        """
        encoded, is_sent_as_bound = sent_token(*authorization)
        at = self._clock.wall()
        with self._binding.words_of(is_bound=is_sent_as_bound):
            token = self._verified(encoded)
            self._binding.check(token, encoded, request, at=at, is_bound=is_sent_as_bound)
        return token

    def certificate_of(
        self, peer: str | None, headers: Callable[[str], Sequence[str | None]]
    ) -> bytes | None:
        """The certificate of a request, for `ProvedRequest`: see `ClientCertificates.of_request`.

        None without `certificates`.
        """
        return self._certificates.of_request(peer, headers) if self._certificates else None

    def verify(self, encoded: str) -> AccessToken:
        """The content of a token that is valid now, and bound to nothing. Raises TokenError.

        InvalidToken (401) if it is not; Unavailable (503) if that cannot be known.
        """
        token = self._verified(encoded)
        self._binding.check(token, encoded, None, at=self._clock.wall(), is_bound=False)
        return token

    def status(self) -> Status:
        """How old the facts are that tokens are checked by."""
        return self._published.status()

    def _verified(self, encoded: str) -> AccessToken:
        if self._look_ahead is not None:
            self._look_ahead.ensure()
        if len(encoded) > _MAX_LENGTH:
            raise InvalidToken(NOT_OURS)
        known = self._known.get(encoded)
        kid, token = known or self._read(encoded)
        check_time(token.claims, self._clock.wall())
        if known is None:
            self._known.put(encoded, (kid, token))
        if self._introspection:
            self._introspection.check(encoded)
        else:
            self._published.status_lists.check(token)
        # A list that a new key signed makes the keys be fetched: the token's key may be gone now.
        if self._published.keys.known(kid) is None:
            raise InvalidToken(NOT_OURS)
        return token

    def _read(self, encoded: str) -> tuple[str, AccessToken]:
        try:
            kid, claims = verified(encoded, types=TYPES, find_key=self._published.keys.find)
        except NotVerified:
            raise InvalidToken(NOT_OURS) from None
        return kid, access_token_of(claims, issuer=self._issuer, audience=self._audience)


def _check_address(address: str, wanted: str) -> None:
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname or parts.query or parts.fragment or address.endswith("/"):
        raise ValueError(
            f"{address!r} is no {wanted}, which begins with https:// and has no slash at its end."
        )
