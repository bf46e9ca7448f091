"""The ledger in one transaction of any database that Django knows; SQLite is the one meant."""

from datetime import datetime, timedelta

from django.db import transaction

from taxpayers.models import ClientSecret
from tokens.ledger.entries import Counted, Event, Failed
from tokens.limits import (
    ADDRESS_BACKOFF,
    FAILURES_FORGOTTEN_AFTER,
    PAIR_BACKOFF,
    Allowance,
    Denial,
    is_open,
)
from tokens.models import FailureBucket, LoginAllowance, LoginEvent


class PortableLedger:
    """See `Ledger`. On SQLite a transaction is alone from its beginning, so nothing races."""

    def add(self, event: Event) -> None:
        LoginEvent.objects.bulk_create([LoginEvent(**event._asdict())])

    @transaction.atomic
    def add_counted(self, event: Event, counted: Counted) -> Allowance | Denial:
        before = self._locked_allowance(counted)
        if before.is_used_up:
            return Denial(before.resets_at, before.limit)
        after = before.with_one_more()
        LoginAllowance.objects.update_or_create(
            system_user_id=counted.system_user_id,
            defaults={"window_started_at": after.started_at, "used": after.used},
        )
        if counted.touched_secret_id is not None:
            ClientSecret.objects.filter(id=counted.touched_secret_id).update(
                last_used_at=counted.at
            )
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

    def allowance(self, counted: Counted) -> Allowance:
        counter = LoginAllowance.objects.filter(pk=counted.system_user_id).first()
        return self._as_allowance(counter, counted)

    def _locked_allowance(self, counted: Counted) -> Allowance:
        counter = (
            LoginAllowance.objects.select_for_update().filter(pk=counted.system_user_id).first()
        )
        return self._as_allowance(counter, counted)

    @staticmethod
    def _as_allowance(counter: LoginAllowance | None, counted: Counted) -> Allowance:
        if counter is None or not is_open(counter.window_started_at, counted.at):
            return Allowance(counted.limit, 0, counted.at)
        return Allowance(counted.limit, counter.used, counter.window_started_at)

    @staticmethod
    def _failures(bucket: FailureBucket | None, at: datetime) -> int:
        if bucket is None or bucket.last_at < at - FAILURES_FORGOTTEN_AFTER:
            return 0
        return bucket.failures
