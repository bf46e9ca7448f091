"""The sign-ins of staff that are stored, and the sessions that are open."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from identity.staff.models import StaffAccount, StaffSignIn
from identity.staff.sessions import SEEN, STARTED
from taxpayers.redaction import shown

STORED_FOR = timedelta(days=400)
# A locked-out caller may try as often as it likes; more rows would say nothing new.
_LOCK_OUTS, _LATELY = 20, timedelta(minutes=15)
_ADDRESS, _PROGRAM = "address", "program"  # in the session
_LONGEST = 200


def store_sign_in(outcome: str, request: HttpRequest, username: str) -> None:
    """How this sign-in ended. A name that no account has may be a password: it is not stored."""
    at, address = timezone.now(), request.META.get("REMOTE_ADDR") or None
    program = shown(request.META.get("HTTP_USER_AGENT", ""), _LONGEST)
    rows = StaffSignIn.objects
    if outcome == StaffSignIn.LOCKED_OUT:
        lately = rows.filter(outcome=outcome, address=address, at__gt=at - _LATELY)
        if lately[:_LOCK_OUTS].count() == _LOCK_OUTS:
            return
    account = StaffAccount.objects.filter(username__iexact=username).first()
    name = account.username if account else ""
    rows.create(at=at, outcome=outcome, username=name, address=address, program=program)
    if outcome == StaffSignIn.SIGNED_IN:
        request.session.update({_ADDRESS: address, _PROGRAM: program})
        rows.filter(at__lt=at - STORED_FOR).delete()


def former_sign_in(username: str) -> datetime | None:
    """When this person signed in before the present session."""
    rows = StaffSignIn.objects.filter(username=username, outcome=StaffSignIn.SIGNED_IN)
    moments = list(rows.order_by("-at").values_list("at", flat=True)[:2])
    return moments[1] if len(moments) > 1 else None


@dataclass(frozen=True, slots=True)
class OpenSession:
    """`mark` names it in a form; its key would open it."""

    key: str
    mark: str
    account_id: str
    since: datetime | None
    seen: datetime | None
    address: str
    program: str


def open_sessions(at: datetime, account: StaffAccount | None = None) -> list[OpenSession]:
    """Of one account, or of all, the latest first."""
    # Only its data name the account of a session, so all of the last half hour are read: a few.
    alive = Session.objects.filter(expire_date__gt=at).iterator()
    decoded = ((row.session_key, row.get_decoded()) for row in alive)
    found = [
        OpenSession(
            key,
            salted_hmac("open session", key).hexdigest()[:16],
            data[SESSION_KEY],
            _moment(data.get(STARTED)),
            _moment(data.get(SEEN)),
            data.get(_ADDRESS) or "",
            data.get(_PROGRAM, ""),
        )
        for key, data in decoded
        if SESSION_KEY in data and (account is None or data[SESSION_KEY] == str(account.pk))
    ]
    return sorted(found, key=lambda one: one.since or at, reverse=True)


def _moment(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
