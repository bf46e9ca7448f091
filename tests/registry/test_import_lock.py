"""The lock of an import whose node vanished: PostgreSQL ends its connection by itself."""

import contextlib
import time

import pytest

from taxpayers.services import ServiceError, import_lock, one_import_at_a_time
from tests.registry.other_import import import_elsewhere


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_the_lock_of_a_node_that_vanished_is_free_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minute = import_lock._END_IF_IDLE
    assert minute.endswith("'60s'")
    monkeypatch.setattr(import_lock, "_END_IF_IDLE", minute.replace("60s", "1s"))
    with import_elsewhere():  # as if nothing were ever heard of it again
        with pytest.raises(ServiceError, match="Another import is running"), one_import_at_a_time():
            pass
        deadline, is_ours = time.monotonic() + 15, False
        while not is_ours:
            assert time.monotonic() < deadline
            with contextlib.suppress(ServiceError), one_import_at_a_time():
                is_ours = True
            time.sleep(0.1)
