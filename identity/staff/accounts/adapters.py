"""The adapters of django-allauth: who may sign in, what is logged, how secrets are stored."""

import base64
import logging
import time
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _
from prometheus_client import Counter

from identity.staff.accounts.changes.sign_in import choose_password
from identity.staff.accounts.guesses import count_guess, fold_name, remember_browser
from identity.staff.accounts.required_first import is_first_password_expired, require_own_password
from identity.staff.accounts.sign_ins import store_sign_in
from identity.staff.framework.tasks import author
from identity.staff.models import StaffAccount, StaffSignIn
from identity.staff.sessions import fetch_after_sign_in
from tokens.metrics import COUNTED

logger = logging.getLogger("identity.staff.accounts")

_ENDS = tuple(outcome for outcome, _title in StaffSignIn.OUTCOMES)
_sign_ins = Counter(
    "staff_sign_ins", "Sign-ins of staff by how they ended.", ["outcome"], registry=COUNTED
)


class StaffAccounts(DefaultAccountAdapter):
    """Only staff can sign in, and only account managers create accounts."""

    # One text for an unknown name, a wrong password and an account that is not active.
    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _(
            "The user name or the password is wrong. Try again, or ask an account manager for a new"
            " password."
        ),
        "first_password_expired": _(
            "This first password has expired. Ask an account manager for a new one."
        ),
        "too_many_login_attempts": _(
            "Too many failed attempts. Sign in with a passkey, or wait for 15 minutes, at most for"
            " an hour, and try again. If it was not you, tell your security officer."
        ),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        name = credentials.get("username", "")
        guess = count_guess(request, "password", name)
        if guess is None:
            log_sign_in("locked out", request, name)
            raise self.validation_error("too_many_login_attempts")
        user = super().authenticate(request, **credentials)
        if user is not None:
            guess.give_back()
            if is_first_password_expired(user):
                log_sign_in("first password expired", request, name)
                raise self.validation_error("first_password_expired")
        return user

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        log_sign_in("sign-in failed", request, credentials.get("username", ""))

    def pre_login(
        self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any
    ) -> HttpResponse | None:
        if not getattr(user, "is_staff", False):
            log_sign_in("no staff account", request, user.get_username())
            return self.respond_user_inactive(request, user)
        return super().pre_login(request, user, **kwargs)

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        # No second confirmation right after a sign-in or a confirmation.
        records = get_authentication_records(self.request, self.request.user)
        is_recent = bool(records) and (
            time.time() - records[-1]["at"] < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
        )
        return not is_recent and super().is_reauthentication_required(app=app, **kwargs)

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        super().login(request, user)
        require_own_password(request, user)
        fetch_after_sign_in(request, user.pk)
        log_sign_in("signed in", request, user.get_username(), logging.INFO)

    def post_login(
        self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any
    ) -> HttpResponse:
        response = super().post_login(request, user, **kwargs)
        remember_browser(request, response, fold_name(user.get_username()))
        return response

    def set_password(self, user: AbstractBaseUser, password: str) -> None:
        # allauth calls this when a person changes their own password.
        account = StaffAccount.objects.get(pk=user.pk)
        choose_password(
            account=account, password=password, by=author(self.request), at=timezone.now()
        )
        user.password = account.password  # the session of this request goes on with it

    def send_notification_mail(
        self, template_prefix: str, user: AbstractBaseUser, *args: Any, **kwargs: Any
    ) -> None:
        # Of a changed password or second factor. Accounts have no e-mail address: it is logged.
        event = template_prefix.rpartition("/")[2].replace("_", " ")
        log_sign_in(event, self.request, user.get_username(), logging.INFO)


class SecondFactors(DefaultMFAAdapter):
    """Second factors of staff: encrypted at rest, passkeys bound to the name in STAFF_URL."""

    def get_totp_issuer(self) -> str:
        return f"Token service ({settings.ENVIRONMENT})"

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            logger.error(  # noqa: TRY400 - of no use: it is the key
                "a second step cannot be decrypted: check SECRET_KEY_FALLBACKS"
            )
            page = render(self.request, "account/unreadable_second_step.html", status=503)
            raise ImmediateHttpResponse(page) from None

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": passkey_host(), "name": "Token service"}

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Any) -> str:  # noqa: A002 - allauth's name
        return gettext("My passkey")


def passkey_host() -> str:
    """The host name that passkeys are bound to (the RP ID of WebAuthn): that of STAFF_URL."""
    return urlsplit(settings.STAFF_URL).hostname or ""


def log_sign_in(
    event: str, request: HttpRequest, username: str, level: int = logging.WARNING
) -> None:
    """Write what happened, with name and address; count and store it if it ends a sign-in."""
    if event in _ENDS:
        store_sign_in(event, request, username)
        _sign_ins.labels(event.replace(" ", "_").replace("-", "_")).inc()
    address = request.META.get("REMOTE_ADDR")
    logger.log(level, event, extra={"username": username[:150], "address": address})


def _cipher() -> MultiFernet:
    """Encrypts second factors at rest, with a key from SECRET_KEY by HKDF-SHA256 (RFC 5869).

    Not from KEY_ENCRYPTION_KEYS: they are removed after a rotation, and staff would be locked out.
    """
    keys = []
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        derivation = HKDF(SHA256(), length=32, salt=None, info=b"second factors at rest")
        keys.append(Fernet(base64.urlsafe_b64encode(derivation.derive(secret.encode()))))
    return MultiFernet(keys)
