"""What the tests of each address leave out. It may be read before Django: no models at its top."""

import pytest
from django.http import HttpResponseForbidden


@pytest.fixture
def plain_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of refusals: what their page shows (tests/staff/test_frame.py) takes longest."""
    page = "identity.staff.urls.handler403"
    monkeypatch.setattr(page, lambda *_, **__: HttpResponseForbidden())
