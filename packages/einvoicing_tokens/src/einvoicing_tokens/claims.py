"""The claims of an access token, checked (RFC 9068 section 4). Pure: the moment is an argument."""

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from einvoicing_tokens.access_token import AccessToken, Taxpayer
from einvoicing_tokens.errors import InvalidToken

# For clocks that differ. A token lives for an hour, so more than this is a clock to be set.
LEEWAY_SECONDS = 10
# A token that is too new does no harm: the clock of this API may be minutes behind.
_EARLY_SECONDS = 120

NOT_OURS = (
    "The token was not issued by the identity service of this API, or was changed on the way, or"
    " belongs to the other environment. Log in again."
)


def access_token_of(claims: Mapping[str, Any], *, issuer: str, audience: str) -> AccessToken:
    """The token with these claims, whose signature was verified; its time is not checked.

    Raises InvalidToken for another issuer or audience, or claims of another shape.
    """
    try:
        _check_issuer(claims, issuer)
        _check_audience(claims["aud"], audience)
        return _access_token(claims)
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        raise InvalidToken(NOT_OURS) from None


def check_time(claims: Mapping[str, Any], at: float) -> None:
    """Whether it is valid at this moment, in Unix seconds. Raises InvalidToken."""
    try:
        _check_time(claims, at)
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        raise InvalidToken(NOT_OURS) from None


def _check_issuer(claims: Mapping[str, Any], issuer: str) -> None:
    if claims["iss"] != issuer:
        raise ValueError("another issuer")


def _check_audience(audiences: Any, audience: str) -> None:
    named = [audiences] if isinstance(audiences, str) else audiences
    if not isinstance(named, list):
        raise TypeError("aud is a string or a list of strings")
    if audience not in named:
        raise InvalidToken(
            f"The token is meant for another API: its audience is not {audience}. Log in with a"
            " scope of this API."
        )


def _check_time(claims: Mapping[str, Any], at: float) -> None:
    begins = max(_seconds(claims["iat"]), _seconds(claims.get("nbf", 0)))
    if at < begins - _EARLY_SECONDS:
        raise InvalidToken(
            "The token is not valid yet: the clock of this API or of the identity service is wrong."
        )
    if at >= (expires := _seconds(claims["exp"])) + LEEWAY_SECONDS:
        raise InvalidToken(
            f"The token expired at {_moment(expires):%Y-%m-%dT%H:%M:%SZ}. Log in again."
        )


def _access_token(claims: Mapping[str, Any]) -> AccessToken:
    named = claims["taxpayer"]
    taxpayer = Taxpayer(_text(named["tin"]), _text(named["rob"]) if "rob" in named else "")
    if claims["sub"] != str(taxpayer):
        raise ValueError("sub and taxpayer name the represented taxpayer both")
    actor = _text(claims["act"]["sub"]) if "act" in claims else None
    permissions = _texts(claims["permissions"]) if "permissions" in claims else None
    if actor is not None and permissions is None:
        raise ValueError("an intermediary is limited by permissions")
    return AccessToken(
        taxpayer=taxpayer,
        actor=actor,
        client_id=_text(claims["client_id"]),
        jti=_text(claims["jti"]),
        scopes=tuple(_text(claims["scope"]).split(" ")),
        permissions=permissions,
        issued_at=_moment(_seconds(claims["iat"])),
        expires_at=_moment(_seconds(claims["exp"])),
        claims=dict(claims),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("a text is expected")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of texts is expected")
    return tuple(_text(item) for item in value)


def _seconds(value: Any) -> int:
    if type(value) is not int:  # True is no time, and neither is NaN
        raise TypeError("whole seconds are expected")
    return value


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
