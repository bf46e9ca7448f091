"""The tables of the protocol."""

from tokens.models.logins import (
    CountingMark,
    FailureBucket,
    LoginCount,
    LoginEvent,
    RevokedToken,
    SigningKey,
    ThrottledCaller,
    UsedAssertion,
    UsedProof,
)
from tokens.models.protected_apis import ProtectedApi, ProtectedApiSecret
