"""Which addresses take a body longer than any other, and from which callers.

Only where staff pages and the management API are served: what everybody can call takes no more
than the server reads of every request.
"""

import re
from datetime import UTC, datetime

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, close_old_connections
from django.http.cookie import parse_cookie

from identity.management_api import BASE_PATH
from identity.server.overload import LongBodies, NoPlace, NotSignedIn, Places, Scope, header_of
from taxpayers.duties import are_for_management
from taxpayers.shut_down import answered_within
from tokens.access_tokens.verification import InvalidToken
from tokens.resource_server.active_token import verified_token

# Files of up to 16 MiB, and the form around them; forms with long lists; rows of an import.
_UPLOAD_BYTES, _FORM_BYTES, _JSON_BYTES = 17 * 1024 * 1024, 128 * 1024, 512 * 1024
# Of each process. With the lengths above they are a bound of what lies on its disk: 78 MiB.
_UPLOADS, _FORMS, _JSON = 4, 16, 16
_ANSWER_SECONDS = 1.5
_UPLOAD = re.compile("/admin/[a-z]+/[a-z]+/import_[a-z_]+/")
_SESSION = re.compile("[a-z0-9]{32}")


def long_bodies(scope: Scope) -> LongBodies | None:
    """What this request may send; None: no more than any other."""
    path = scope["path"]
    if path.startswith(f"/{BASE_PATH}/"):
        return _json
    if not path.startswith("/admin/"):
        return None
    return _uploads if scope["method"] == "POST" and _UPLOAD.fullmatch(path) else _forms


def _check_token(scope: Scope) -> None:
    """By signature, time and scope; the registry is asked when the body is there."""
    header = header_of(scope, b"authorization")
    try:
        token = verified_token(header, datetime.now(UTC))
    except InvalidToken as fault:
        raise NotSignedIn(str(fault)) from None
    except DatabaseError:
        raise NoPlace from None
    if not are_for_management(" ".join(token.scopes)):
        raise NotSignedIn("The token is not for the management API.")


def _check_session(scope: Scope) -> None:
    if _signed_in_until(scope) <= datetime.now(UTC):
        raise NotSignedIn


def _signed_in_until(scope: Scope) -> datetime:
    """The end of the session, by its row; only a session of an account counts."""
    cookies = parse_cookie(header_of(scope, b"cookie"))
    key = cookies.get(settings.SESSION_COOKIE_NAME, "")
    if not _SESSION.fullmatch(key):
        raise NotSignedIn
    try:
        with answered_within(_ANSWER_SECONDS):
            row = SessionStore.get_model_class().objects.filter(session_key=key).first()
    except DatabaseError:
        close_old_connections()  # no request ends here, so nothing else replaces a broken one
        raise NoPlace from None
    if row is None or SESSION_KEY not in row.get_decoded():
        raise NotSignedIn
    return row.expire_date


_uploads = LongBodies(_UPLOAD_BYTES, Places(_UPLOADS), _check_session)
# A form that is sent too late is stored for the next sign-in: a former session will do.
_forms = LongBodies(_FORM_BYTES, Places(_FORMS), _signed_in_until)
_json = LongBodies(_JSON_BYTES, Places(_JSON), _check_token)
