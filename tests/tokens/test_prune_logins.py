"""`prune_logins`: old events are deleted, by month where there are partitions (contract 6)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError, connection, transaction
from pytest_django.fixtures import Settings
from tqdm import tqdm
from uuid_utils.compat import uuid7

from taxpayers.management.command import author
from taxpayers.models import Change
from tests.support.at_once import begin, end
from tests.support.command_line import json_output_of, output_of
from tests.support.erp import Erp
from tests.support.factories import stored_login
from tokens.login_events import partitions, retention
from tokens.login_events.partitions import (
    drop_partition,
    first_id,
    has_partition,
    make_partitions,
    partitions_before,
)
from tokens.models import LoginEvent, RevokedToken, UsedAssertion, UsedProof

pytestmark = pytest.mark.django_db(transaction=True)
with_partitions = pytest.mark.postgresql  # SQLite has none
NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=500)


def prune(*arguments: str) -> dict[str, Any]:
    return json_output_of("prune_logins", *(arguments or ("--older-than", "400d")), "--yes")


def test_old_events_are_deleted_and_others_stay() -> None:
    make_partitions(OLD)
    stored_login(OLD)
    recent = stored_login(NOW - timedelta(days=1))
    assert prune()["deleted"] >= 1
    assert list(LoginEvent.objects.all()) == [recent]
    assert prune()["deleted"] == 0
    row = Change.objects.get()
    assert (row.action, row.object_type, row.by) == ("prune_logins", "loginevent", author().name)
    assert set(row.after) & {"deleted_logins", "deleted_months"}
    days = (row.at - datetime.fromisoformat(row.after["deleted_before"])).days
    assert days == 400


def test_what_was_deleted_is_recorded_though_the_operator_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_partitions(OLD)
    stored_login(OLD)

    def stop(_bar: object, _number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tqdm, "update", stop)
    with pytest.raises(CommandError, match="Stopped"):
        prune()
    assert not LoginEvent.objects.exists()
    change = Change.objects.get()
    assert (change.action, change.object_id, change.label) == ("prune_logins", "", "logins")


AGES = [1, 410, 430]


@pytest.fixture
def logins_of_ages() -> None:
    for days in AGES:
        make_partitions(NOW - timedelta(days))
        stored_login(NOW - timedelta(days))


def ages() -> list[int]:
    return sorted((NOW - at).days for at in LoginEvent.objects.values_list("at", flat=True))


@pytest.mark.usefixtures("logins_of_ages")
def test_how_long_logins_are_stored_is_a_setting_which_is_obeyed_every_night(
    settings: Settings,
) -> None:
    assert "LOGIN_RETENTION is not set" in output_of("prune_logins")
    assert ages() == AGES
    settings.LOGIN_RETENTION = timedelta(days=395)
    output_of("prune_logins")
    assert 430 not in ages()
    assert 1 in ages()


@pytest.mark.usefixtures("logins_of_ages")
def test_a_shorter_time_is_not_obeyed_in_silence(settings: Settings) -> None:
    settings.LOGIN_RETENTION = timedelta(days=380)
    later = NOW + timedelta(days=31)
    with pytest.raises(CommandError, match=rf"from {NOW - timedelta(430):%Y-%m-%d} to .*--yes"):
        output_of("prune_logins")
    assert ages() == AGES
    assert has_partition(later)  # what else the night needs is done
    output_of("prune_logins", "--yes")
    assert ages() == [1]


@with_partitions
def test_partitions_of_coming_months_are_made_once() -> None:
    assert make_partitions(NOW) == []
    later = NOW + timedelta(days=70)
    assert len(make_partitions(later)) in (2, 3)
    assert make_partitions(later) == []


@with_partitions
def test_a_month_is_dropped_only_when_all_of_it_is_old() -> None:
    end = datetime(2020, 3, 1, tzinfo=UTC)
    make_partitions(end - timedelta(days=2))
    assert partitions_before(end - timedelta(microseconds=1)) == []
    assert partitions_before(end) == ["login_events_2020_02"]


@contextmanager
def reading_for_long() -> Iterator[None]:
    """Another session reads logins, and keeps its lock to the end."""
    reading, done = threading.Event(), threading.Event()

    def read() -> None:
        with transaction.atomic():
            LoginEvent.objects.count()
            reading.set()
            done.wait(20)

    reader = begin(read)
    try:
        assert reading.wait(10)
        yield
    finally:
        done.set()
        end(reader)


@with_partitions
def test_pruning_waits_for_long_queries_without_blocking_logins(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_RETRY_SECONDS", 0.05)
    make_partitions(OLD)
    stored_login(OLD)
    with reading_for_long():
        pruner = begin(prune)
        # The reader holds a lock that the pruner waits for; logins need not wait for either.
        for _ in range(10):
            assert erp.login().status_code == 200
        assert pruner.is_alive()
    end(pruner)
    assert not LoginEvent.objects.filter(pk__lt=first_id(NOW - timedelta(days=400))).exists()


def partition_of(event: LoginEvent) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM login_events WHERE id = %s", [event.id]
        )
        return str(cursor.fetchone()[0])


def lose_partition_of(at: datetime) -> str:
    """As if the month's partition was never made: its events lie in the default one."""
    name = f"login_events_{at:%Y_%m}"
    drop_partition(name)
    return name


@with_partitions
@pytest.mark.parametrize("at_once", [1, 2, 20_000])
def test_a_month_that_lies_in_the_default_partition_is_repaired(
    at_once: int, erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_COPY_BATCH", at_once)
    month = lose_partition_of(NOW)
    events = [stored_login(NOW) for _ in range(5)]
    assert erp.login().status_code == 200
    assert {partition_of(event) for event in LoginEvent.objects.all()} == {"login_events_default"}
    assert not has_partition(NOW)
    prune()
    assert has_partition(NOW)
    assert erp.login().status_code == 200
    assert LoginEvent.objects.count() == len(events) + 2
    assert {partition_of(event) for event in LoginEvent.objects.all()} == {month}


@with_partitions
def test_a_repair_that_was_interrupted_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_TRIES", 1)
    name = lose_partition_of(NOW)
    events = [stored_login(NOW)]
    with reading_for_long(), pytest.raises(OperationalError):
        make_partitions(NOW)
    events.append(stored_login(NOW))
    assert LoginEvent.objects.count() == len(events)  # each can be read once, all the while
    make_partitions(NOW)
    assert LoginEvent.objects.count() == len(events)
    assert {partition_of(event) for event in events} == {name}


@with_partitions
def test_old_logins_in_the_default_partition_are_deleted() -> None:
    old, young = (stored_login(datetime(year, 1, 1, tzinfo=UTC)) for year in (2001, 2099))
    assert partition_of(old) == partition_of(young) == "login_events_default"
    assert prune()["logins_of_no_month"] == 1
    assert list(LoginEvent.objects.all()) == [young]


def test_what_has_expired_is_deleted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_BATCH", 2)
    tables: dict[Any, dict[str, Any]] = {
        UsedAssertion: {},
        UsedProof: {},
        RevokedToken: {"revoked_at": NOW},
    }
    for table, more in tables.items():
        for number in range(-1, 5):
            table.objects.create(pk=uuid7(), expires_at=NOW - timedelta(seconds=number), **more)
    assert retention.prune_expired(NOW) == 4 * len(tables)
    for table in tables:  # one that expires at this moment is accepted at this moment
        left = table.objects.order_by("expires_at").values_list("expires_at", flat=True)
        assert list(left) == [NOW, NOW + timedelta(seconds=1)]
    assert retention.prune_expired(NOW) == 0
