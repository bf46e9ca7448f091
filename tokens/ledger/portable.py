"""The ledger in one transaction of any database that Django knows; SQLite is the one meant."""

from datetime import datetime, timedelta

from django.db import transaction

from taxpayers.models import Usage
from tokens.ledger.entries import Counted, Event, Failed
from tokens.limits import (
    ADDRESS_BACKOFF,
    FAILURES_FORGOTTEN_AFTER,
    PAIR_BACKOFF,
    Allowance,
    Denial,
    is_open,
)
from tokens.models import FailureBucket, LoginEvent


class PortableLedger:
    """See `Ledger`. On SQLite a transaction is alone from its beginning, so nothing races."""

    def add(self, event: Event) -> None:
        LoginEvent.objects.bulk_create([LoginEvent(**event._asdict())])

    @transaction.atomic
    def add_counted(self, event: Event, counted: Counted) -> Allowance | Denial:
        usage = Usage.objects.select_for_update().filter(pk=counted.system_user_id).first()
        before = _allowance(usage, counted.limit, counted.at)
        if before.is_used_up:
            return Denial(before.resets_at, before.limit)
        after = before.with_one_more()
        secrets_used = usage.secrets_used if usage else {}
        Usage(
            system_user_id=counted.system_user_id,
            minute_began_at=after.started_at,
            used=after.used,
            secrets_used=secrets_used | {str(counted.secret_id): after.started_at.isoformat()},
        ).save(force_insert=usage is None, force_update=usage is not None)
        self.add(event)
        return after

    @transaction.atomic
    def add_failed(self, event: Event, failed: Failed) -> Denial | None:
        buckets = FailureBucket.objects.select_for_update().in_bulk(
            [failed.pair_bucket, failed.address_bucket]
        )
        pauses_until = [
            bucket.open_at
            for bucket in buckets.values()
            # A failure without a pause is no reason to wait, not even for a clock that is behind.
            if bucket.open_at > max(failed.at, bucket.last_at)
        ]
        if pauses_until:
            return Denial(max(pauses_until))
        for id_, backoff in (
            (failed.pair_bucket, PAIR_BACKOFF),
            (failed.address_bucket, ADDRESS_BACKOFF),
        ):
            pauses = backoff.pauses_seconds
            failures = min(self._failures(buckets.get(id_), failed.at) + 1, len(pauses))
            FailureBucket.objects.update_or_create(
                id=id_,
                defaults={
                    "failures": failures,
                    "last_at": failed.at,
                    "open_at": failed.at + timedelta(seconds=pauses[failures - 1]),
                },
            )
        self.add(event)
        return None

    def allowance(self, system_user_id: int, limit: int, at: datetime) -> Allowance:
        return _allowance(Usage.objects.filter(pk=system_user_id).first(), limit, at)

    @staticmethod
    def _failures(bucket: FailureBucket | None, at: datetime) -> int:
        if bucket is None or bucket.last_at < at - FAILURES_FORGOTTEN_AFTER:
            return 0
        return bucket.failures


def _allowance(usage: Usage | None, limit: int, at: datetime) -> Allowance:
    if usage is None or not is_open(usage.minute_began_at, at):
        return Allowance(limit, 0, at)
    return Allowance(limit, usage.used, usage.minute_began_at)
