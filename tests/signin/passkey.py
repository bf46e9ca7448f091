"""A passkey as a device has it, without a browser: signs what the service asks (WebAuthn)."""

import json
import os
from typing import Any

from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.webauthn.internal.auth import WebAuthn
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from fido2.cose import ES256
from fido2.utils import sha256, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from identity.staff.accounts.adapters import passkey_host

_FLAG = AuthenticatorData.FLAG


class Passkey:
    """The passkey of this person, registered with their account unless the test does that."""

    def __init__(self, user: User, *, is_registered: bool = True) -> None:
        self.user = user
        self._id = os.urandom(16)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._host = passkey_host()
        if is_registered:
            WebAuthn.add(user, "A phone", self.registration(b""))

    def registration(self, challenge: str | bytes) -> dict[str, Any]:
        public = AttestedCredentialData.create(
            Aaguid.NONE, self._id, ES256.from_cryptography_key(self._key.public_key())
        )
        data = AuthenticatorData.create(
            sha256(self._host.encode()), _FLAG.UP | _FLAG.UV | _FLAG.AT, 0, public
        )
        return {
            **self._frame(),
            "response": {
                "clientDataJSON": websafe_encode(self._client_data("create", challenge)),
                "attestationObject": websafe_encode(AttestationObject.create("none", data, {})),
            },
            "clientExtensionResults": {"credProps": {"rk": True}},
        }

    def answer(self, challenge: str) -> dict[str, Any]:
        client_data = self._client_data("get", challenge)
        data = AuthenticatorData.create(sha256(self._host.encode()), _FLAG.UP | _FLAG.UV, 1)
        signature = self._key.sign(bytes(data) + client_data.hash, ec.ECDSA(SHA256()))
        return {
            **self._frame(),
            "response": {
                "clientDataJSON": websafe_encode(client_data),
                "authenticatorData": websafe_encode(data),
                "signature": websafe_encode(signature),
                "userHandle": websafe_encode(user_pk_to_url_str(self.user).encode()),
            },
            "clientExtensionResults": {},
        }

    def _frame(self) -> dict[str, Any]:
        name = websafe_encode(self._id)
        return {"id": name, "rawId": name, "type": "public-key"}

    def _client_data(self, kind: str, challenge: str | bytes) -> CollectedClientData:
        origin = f"https://{self._host}"
        return CollectedClientData.create(f"webauthn.{kind}", challenge, origin, False)


def set_up(passkey: Passkey, client: Client, name: str) -> Any:
    """The answer to the form with which its owner, who is signed in, adds this key."""
    url = reverse("mfa_add_webauthn")
    options = client.get(url).context["js_data"]["creation_options"]
    registration = passkey.registration(options["publicKey"]["challenge"])
    sent = {"name": name, "passwordless": "on", "credential": json.dumps(registration)}
    return client.post(url, sent)


def as_second_step(passkey: Passkey, client: Client) -> Any:
    url = reverse("mfa_authenticate")
    options = client.get(url).context["js_data"]["request_options"]
    challenge = options["publicKey"]["challenge"]
    return client.post(url, {"credential": json.dumps(passkey.answer(challenge))})


def sign_in_with(passkey: Passkey, client: Client) -> Any:
    url = reverse("mfa_login_webauthn")
    options = client.get(url, headers={"x-requested-with": "XMLHttpRequest"}).json()
    challenge = options["request_options"]["publicKey"]["challenge"]
    return client.post(url, {"credential": json.dumps(passkey.answer(challenge))})
