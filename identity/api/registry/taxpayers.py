"""`/taxpayers`: who is represented."""

from typing import Any

from django.db.models import Q
from rest_framework import serializers

from identity.api.framework.fields import Body, Choice, Moment, ReasonBody, Taxpayer, Text
from identity.api.framework.kinds import ApiTask, RecordKind, tasks_by_reason
from identity.api.framework.query import ByName
from taxpayers import models
from taxpayers.duties import Duty
from taxpayers.identifiers import TaxpayerId
from taxpayers.services import taxpayers
from taxpayers.services.taxpayers import REGISTER_TAXPAYER, RENAME_TAXPAYER
from taxpayers.validation import taxpayer_notation


class TaxpayerRecord(serializers.Serializer[models.Taxpayer]):
    """A taxpayer."""

    taxpayer = serializers.CharField(source="identifier", help_text="TIN or TIN:ROB.")
    tin = serializers.CharField()
    rob = serializers.CharField(help_text="Empty where there is none.")
    name = serializers.CharField()
    is_active = serializers.BooleanField()
    registered_at = Moment(source="created_at")


class NewTaxpayerBody(Body):
    """What is needed to register a taxpayer."""

    taxpayer = Taxpayer()
    name = Text()


class RenameBody(ReasonBody):
    """What can be changed of a taxpayer."""

    name = Text()


def condition_of(named: TaxpayerId, path: str = "") -> Q:
    """Finds what this taxpayer has; `path` leads from there to its TIN and ROB number."""
    return Q(**{f"{path}tin": named.tin, f"{path}rob": named.rob})


class Tin(Text):
    """A TIN in any letters, to filter by."""

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(data).strip().upper()


def of_taxpayer(named: TaxpayerId) -> Q:
    """Finds what this taxpayer has, by its key."""
    rows = models.Taxpayer.objects.filter(condition_of(named))
    return Q(taxpayer=rows.values("pk")[:1])


def of_intermediary(named: TaxpayerId) -> Q:
    """Finds what this intermediary has, by its key."""
    rows = models.Intermediary.objects.filter(condition_of(named, "taxpayer__"))
    return Q(intermediary=rows.values("pk")[:1])


class TaxpayerFilters(ByName):
    tin = Tin(required=False, help_text="Those with this TIN, whatever their ROB number.")
    state = Choice({"active": True, "inactive": False}, required=False, source="is_active")


KIND = RecordKind(
    name="taxpayers",
    singular="taxpayer",
    parameter="taxpayer",
    names="TIN or TIN:ROB, as in the header onbehalfof.",
    address=lambda row: str(row.identifier),
    where=lambda text: condition_of(taxpayer_notation().parse(text)),
    record=TaxpayerRecord,
    duty=Duty.REGISTER,
    also_read_by=frozenset({Duty.GRANT, Duty.ISSUE}),
    summary="List taxpayers",
    order=("tin", "rob"),
    rows=models.Taxpayer.objects.all,
    filters=TaxpayerFilters,
    create=ApiTask(
        "",
        REGISTER_TAXPAYER,
        NewTaxpayerBody,
        note="Safe to repeat: one that is registered under this name is answered with 200.",
    ),
    change=ApiTask("", RENAME_TAXPAYER, RenameBody),
    tasks=tasks_by_reason(vars(taxpayers)),
)
