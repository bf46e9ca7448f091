"""Ends the sessions of a staff account."""

from datetime import datetime

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session

from identity.staff.models import StaffAccount


def end_sessions(account: StaffAccount, at: datetime) -> None:
    """Sign the account out everywhere.

    A session names its account only inside its data, so all that are alive are read: those of the
    last half hour, which are few.
    """
    alive = Session.objects.filter(expire_date__gt=at)
    ended = [
        session.session_key
        for session in alive.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(account.pk)
    ]
    Session.objects.filter(session_key__in=ended).delete()
