"""Headers of pages that are too long to mean anything never reach Django."""

from io import BytesIO
from typing import Any

import pytest

from identity.long_headers import without_long_headers


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("CONTENT_TYPE", 200),
        ("HTTP_COOKIE", 4096),
        *(
            (f"HTTP_{name}", 500)
            for name in ("ACCEPT", "ACCEPT_LANGUAGE", "IF_NONE_MATCH", "RANGE")
        ),
        # Without these a request would come from elsewhere, or be done twice.
        ("HTTP_X_FORWARDED_FOR", None),
        ("HTTP_X_FORWARDED_PROTO", None),
        ("HTTP_IDEMPOTENCY_KEY", None),
        ("HTTP_AUTHORIZATION", None),
        ("HTTP_ORIGIN", None),
    ],
)
def test_a_header_beyond_its_length_is_as_if_it_were_absent(name: str, longest: int | None) -> None:
    seen: list[dict[str, Any]] = []

    def see(environ: dict[str, Any], _start: Any) -> list[bytes]:
        seen.append(environ)
        return []

    application = without_long_headers(see)
    for length in (longest or 30_000, (longest or 30_000) + 1):
        application({name: "a" * length, "wsgi.input": BytesIO()}, lambda *_: None)
    assert [name in environ for environ in seen] == [True, longest is None]
