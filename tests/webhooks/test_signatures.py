"""Signatures as the Standard Webhooks specification has them, by two libraries."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from identity.webhooks.secret_storage import new_secret, signed_headers

# The example that every library of the specification is tested with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, SECONDS, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_has_its_signature() -> None:
    assert signed_headers(ID, SECONDS, BODY, [SECRET]) == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_a_new_secret_is_as_the_specification_wants_it() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    assert secret != new_secret()


def test_the_library_of_the_specification_accepts_it_and_nothing_else() -> None:
    now, former, secret = datetime.now(UTC), new_secret(), new_secret()
    body = b'{"type":"a","data":{"x":"\xc3\xa9"}}'
    headers = signed_headers(ID, int(now.timestamp()), body, [secret, former])
    for known in (secret, former):  # while a secret is replaced
        assert Webhook(known).verify(body, headers)["type"] == "a"
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers | {"webhook-id": "msg_other"})
    old = int((now - timedelta(minutes=6)).timestamp())
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, signed_headers(ID, old, body, [secret]))
