"""How long logins are stored is a setting, which no upgrade touches (`prune_logins`)."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management.base import CommandError
from django.db import connection
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from identity.configuration.kinds import WrongValue
from identity.configuration.setting_list import SETTINGS
from tests.support.command_line import output_of
from tokens.login_events.partitions import first_id, has_partition, make_partitions
from tokens.models import LoginEvent

NOW = datetime.now(UTC)


@pytest.fixture
def ages(transactional_db: None) -> list[int]:
    """Days since each login that is stored."""
    days = [1, 410, 430]
    for age in days:
        at = NOW - timedelta(days=age)
        make_partitions(connection, at)
        LoginEvent.objects.create(id=type(uuid7())(int=first_id(at).int + age), at=at)
    return days


def stored() -> list[int]:
    return sorted((NOW - at).days for at in LoginEvent.objects.values_list("at", flat=True))


def test_without_the_setting_every_login_is_stored(ages: list[int]) -> None:
    assert "LOGIN_RETENTION is not set" in output_of("prune_logins")
    assert stored() == ages


def test_the_nightly_work_deletes_what_is_older(ages: list[int], settings: Settings) -> None:
    settings.LOGIN_RETENTION = timedelta(days=395)
    output_of("prune_logins")
    assert 430 not in stored()
    assert 1 in stored()


def test_a_shorter_time_is_not_obeyed_in_silence(ages: list[int], settings: Settings) -> None:
    settings.LOGIN_RETENTION = timedelta(days=380)
    later = NOW + timedelta(days=31)
    with pytest.raises(CommandError, match=rf"from {NOW - timedelta(430):%Y-%m-%d} to .*--yes"):
        output_of("prune_logins")
    assert stored() == ages
    assert has_partition(connection, later)  # what else the night needs is done
    output_of("prune_logins", "--yes")
    assert stored() == [1]


@pytest.mark.parametrize("text", ["29d", "0d", "400", "-400d", "1y", "\u0664\u0660\u0660d"])
def test_a_time_that_is_too_short_or_none_is_a_wrong_setting(text: str) -> None:
    with pytest.raises(WrongValue, match="from 30d to 36500d"):
        SETTINGS["LOGIN_RETENTION"].kind.read(text)
