"""What each client of the sandbox does, and how the other reasons are met."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from identity.sandbox import records
from taxpayers.credentials import Credentials
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import RegistryReason
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tokens.operations.sandbox import NEVER
from tokens.refusals.table import ProtocolReason

TOKEN = "token"


@dataclass(frozen=True, slots=True)
class SandboxClient:
    """One client: what it gets (TOKEN, or the reason of its refusal), in words, and what to send.

    `on_behalf_of` is the value of the header onbehalfof; empty: without the header. `make`
    registers it.
    """

    name: str
    gets: str
    does: str | Promise
    on_behalf_of: str = ""
    make: Callable[[str, datetime], object] = records.new_client

    @property
    def credentials(self) -> Credentials:
        return CREDENTIALS[self.name]


def _refused(reason: str, does: Promise, on_behalf_of: str = "", **made: Any) -> SandboxClient:
    """One that is always refused for this reason, and named by it."""
    return SandboxClient(str(reason), reason, does, on_behalf_of, **made)


CLIENTS = (
    SandboxClient(SandboxName.WORKS, TOKEN, _("Gets a token, without a limit.")),
    SandboxClient(
        SandboxName.INTERMEDIARY,
        TOKEN,
        _(
            "Acts for another taxpayer: gets a token with the permissions documents:submit and"
            " documents:view."
        ),
        records.REPRESENTED,
        make=records.make_agent,
    ),
    SandboxClient(
        SandboxName.TOKEN_FOR_A_MINUTE,
        TOKEN,
        _(
            "Gets a token that expires after 60 seconds (expires_in is 60, X-Renew-At 30 to 54"
            " seconds ahead): to test that you renew it in time, and use it on if you cannot."
        ),
    ),
    SandboxClient(
        SandboxName.SECRET_ENDS_TOMORROW,
        TOKEN,
        _(
            "Gets a token; X-Client-Secret-Expires-At is the end of tomorrow, every day: to test"
            " that you warn in time."
        ),
        make=records.make_ending,
    ),
    SandboxClient(
        SandboxName.ONE_LOGIN_A_MINUTE,
        TOKEN,
        _(
            "Gets one token a minute; the next login is rate_limited, until the minute is over"
            " or you reset its counter. Its counter is shared by all who use it."
        ),
        make=partial(records.new_client, logins_per_minute=1),
    ),
    SandboxClient(
        SandboxName.SYSTEM_WARNING,
        TOKEN,
        _(
            "Gets a token with the header X-System-Warning, whether a change is announced or"
            " not: to test that it is read."
        ),
    ),
    _refused(ProtocolReason.RATE_LIMITED, _("Always over its limit: 429 with Retry-After 30.")),
    _refused(
        ProtocolReason.TEMPORARILY_UNAVAILABLE,
        _(
            "Always 503 with Retry-After, as when the database is out of reach. Nothing is"
            " recorded."
        ),
    ),
    _refused(
        ProtocolReason.SERVER_ERROR,
        _("Always 500, as after an error of ours. Nothing is recorded."),
    ),
    _refused(
        RegistryReason.SECRET_EXPIRED,
        _("Its secret has expired."),
        make=partial(records.make_in_the_past, ends=records.ENDED),
    ),
    _refused(
        RegistryReason.SECRET_REVOKED,
        _("Its secret was revoked."),
        make=records.make_revoked_secret,
    ),
    _refused(
        RegistryReason.SOURCE_NETWORK_NOT_ALLOWED,
        _("Its secret may be used only from a network that no computer is in (192.0.2.0/24)."),
        make=partial(records.new_client, allowed_networks=[records.UNUSED_NETWORK]),
    ),
    _refused(
        RegistryReason.DPOP_PROOF_MISSING,
        _(
            "Gets only tokens that are bound to a key: refused without a header DPoP. With a"
            " right proof it gets a token."
        ),
        make=partial(records.new_client, token_binding=TokenBinding.DPOP),
    ),
    _refused(
        RegistryReason.CERTIFICATE_MISSING,
        _("Gets only tokens that are bound to its TLS certificate: refused without one."),
        make=partial(records.new_client, token_binding=TokenBinding.TLS),
    ),
    _refused(RegistryReason.SYSTEM_USER_BLOCKED, _("It is blocked."), make=records.make_blocked),
    _refused(
        RegistryReason.SYSTEM_USER_EXPIRED,
        _("It has expired."),
        make=partial(records.make_in_the_past, expires_at=records.ENDED),
    ),
    _refused(
        RegistryReason.TAXPAYER_INACTIVE,
        _("Its taxpayer is not active."),
        make=records.make_inactive,
    ),
    _refused(
        RegistryReason.NOT_AN_INTERMEDIARY,
        _("Its taxpayer is no intermediary, and the header is sent."),
        records.REPRESENTED,
    ),
    _refused(
        RegistryReason.INTERMEDIARY_INACTIVE,
        _("Its registration as an intermediary has ended."),
        records.REPRESENTED,
        make=records.make_inactive_intermediary,
    ),
    _refused(
        RegistryReason.OWN_TAXPAYER_NOT_ALLOWED,
        _("It is limited to acting for others, and the header is missing."),
        make=partial(records.make_agent, only_on_behalf=True),
    ),
    _refused(
        RegistryReason.TAXPAYER_NOT_ALLOWED,
        _("It is limited to another taxpayer than the header names."),
        records.WITHOUT_PERMISSION,
        make=partial(records.make_agent, allowed_taxpayers=[TaxpayerId(records.REPRESENTED)]),
    ),
    _refused(
        RegistryReason.NO_PERMISSION,
        _("The taxpayer that the header names has granted nothing."),
        records.WITHOUT_PERMISSION,
        make=records.make_agent,
    ),
    _refused(
        RegistryReason.PERMISSION_NOT_YET_VALID,
        _("The permission begins later."),
        records.NOT_YET_VALID,
        make=partial(records.make_agent, of=records.NOT_YET_VALID, begins=NEVER),
    ),
    _refused(
        RegistryReason.PERMISSION_EXPIRED,
        _("The permission has expired."),
        records.EXPIRED,
        make=partial(
            records.make_agent, of=records.EXPIRED, granted_at=records.BEGAN, ends=records.ENDED
        ),
    ),
    _refused(
        RegistryReason.PERMISSION_REVOKED,
        _("The permission was revoked."),
        records.REVOKED,
        make=records.make_revoked_permission,
    ),
    _refused(
        RegistryReason.PERMISSIONS_NOT_ALLOWED,
        _("It is limited to documents:reject, and the taxpayer has granted other permissions."),
        records.REPRESENTED,
        make=partial(records.make_agent, allowed_permissions=["documents:reject"]),
    ),
)

# The other reasons are of the request, not of the client: with any client, for example `works`.
BY_REQUEST: Mapping[str, str | Promise] = {
    ProtocolReason.METHOD_NOT_ALLOWED: _("Send GET."),
    ProtocolReason.INSECURE_TRANSPORT: _("Use http, where the address of the service is https."),
    ProtocolReason.MALFORMED_REQUEST: _("Send the form as JSON, or a parameter twice."),
    ProtocolReason.MISSING_PARAMETER: _("Leave out grant_type, client_id or client_secret."),
    ProtocolReason.UNSUPPORTED_GRANT_TYPE: _("Send grant_type=password."),
    ProtocolReason.MALFORMED_ON_BEHALF_OF: _("Send the header onbehalfof without a value."),
    ProtocolReason.MALFORMED_CREDENTIALS: _("Cut the last character off client_secret."),
    ProtocolReason.INVALID_CREDENTIALS: _(
        "Send the client_id of one client with the client_secret of"
        " another one. After some failures you have to wait."
    ),
    ProtocolReason.INVALID_DPOP_PROOF: _(
        "Send the header DPoP with any text, as dpop_proof_missing."
    ),
    ProtocolReason.USE_DPOP_NONCE: _("Send a right proof without a nonce, as dpop_proof_missing."),
    RegistryReason.INVALID_SCOPE: _("Send scope=Unknown."),
}
