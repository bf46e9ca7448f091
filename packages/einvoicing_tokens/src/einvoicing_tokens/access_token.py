"""What a verified access token says, and what it allows."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from einvoicing_tokens.errors import InsufficientScope


@dataclass(frozen=True, slots=True)
class Taxpayer:
    """A taxpayer by its tax identification number, and its ROB number where it has one."""

    tin: str
    rob: str = ""

    def __str__(self) -> str:
        """`TIN` or `TIN:ROB`."""
        return f"{self.tin}:{self.rob}" if self.rob else self.tin


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A verified token: the represented taxpayer, who acts, what it may do, until when.

    `actor` (TIN or TIN:ROB) is the intermediary that acts; None: the taxpayer acts for itself.
    `permissions` are the codes that the taxpayer granted to it; None: permissions do not limit it.
    """

    is_authenticated: ClassVar[bool] = True  # Django REST framework expects it of a `user`

    taxpayer: Taxpayer
    actor: str | None
    client_id: str
    jti: str
    scopes: tuple[str, ...]
    permissions: tuple[str, ...] | None
    issued_at: datetime
    expires_at: datetime
    claims: dict[str, Any] = field(compare=False, repr=False)  # as signed

    def may(self, permission: str) -> bool:
        """Whether it may do what this code allows, for example `documents:submit`.

        A taxpayer that acts for itself may do everything: permissions are what it grants to others.
        """
        return self.permissions is None or permission in self.permissions

    @property
    def is_bound(self) -> bool:
        """Whether it names what its sender must possess (`cnf`, RFC 7800)."""
        return "cnf" in self.claims

    def require(self, *, scope: str = "", permission: str = "") -> None:
        """Raises InsufficientScope if it lacks this scope or this permission."""
        if scope and scope not in self.scopes:
            raise self._insufficient(f"This needs a token with the scope {scope}.", scope)
        if permission and not self.may(permission):
            raise self._insufficient(
                f"The represented taxpayer has not granted the permission {permission}. If it was"
                " granted since this login, log in again."
            )

    def _insufficient(self, description: str, scope: str = "") -> InsufficientScope:
        error = InsufficientScope(description, scope)
        if self.is_bound and "jkt" in self.claims["cnf"]:
            error.scheme = "DPoP"
        return error
