"""`/taxpayers`: who is represented."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from identity.api.framework.fields import Body, Choice, Moment, Reason, Taxpayer, Text
from identity.api.framework.kinds import ApiTask, RecordKind
from identity.api.framework.query import Filters
from identity.api.framework.records import Listing
from taxpayers import models
from taxpayers.duties import Duty
from taxpayers.identifiers import MalformedIdentifier
from taxpayers.operations import by_reason_in
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


class RenameBody(Body):
    """What can be changed of a taxpayer."""

    name = Text()
    reason = Reason()


class ReasonBody(Body):
    """Why a change is made; it stands in the history."""

    reason = Reason()


def tasks_by_reason(services: Mapping[str, Any]) -> tuple[ApiTask, ...]:
    """One for each operation of these services that needs only a reason."""
    return tuple(ApiTask(record.verb, record, ReasonBody) for record in by_reason_in(services))


class TaxpayerFilters(Filters):
    """Which taxpayers are listed."""

    tin = Text(required=False, help_text="Those with this TIN, whatever their ROB number.")
    name = Text(required=False, help_text="Those whose name has each of these words, or parts.")
    state = Choice(["active", "inactive"], required=False)


def find_taxpayer(text: str) -> models.Taxpayer | None:
    """The taxpayer that `TIN` or `TIN:ROB` names; None if there is none."""
    try:
        named = taxpayer_notation().parse(text)
    except MalformedIdentifier:
        return None
    return models.Taxpayer.objects.filter(tin=named.tin, rob=named.rob).first()


def of_parties(rows: "QuerySet[Any]", given: Mapping[str, Any]) -> "QuerySet[Any]":
    """Those of the taxpayer and of the intermediary that the filters name."""
    if named := given.get("taxpayer"):
        found = models.Taxpayer.objects.filter(tin=named.tin, rob=named.rob).values("pk")
        rows = rows.filter(taxpayer=found[:1])
    return of_intermediary(rows, given)


def of_intermediary(rows: "QuerySet[Any]", given: Mapping[str, Any]) -> "QuerySet[Any]":
    """Those of the intermediary that the filters name."""
    if (named := given.get("intermediary")) is None:
        return rows
    taxpayer = {"taxpayer__tin": named.tin, "taxpayer__rob": named.rob}
    roles = models.Intermediary.objects.filter(**taxpayer).values("pk")
    return rows.filter(intermediary=roles[:1])


def _rows(given: dict[str, Any], _owner: Any) -> "QuerySet[models.Taxpayer]":
    rows = models.Taxpayer.objects.all()
    if "tin" in given:
        rows = rows.filter(tin=given["tin"].strip().upper())
    if "name" in given:
        rows = rows.filter(name__has_words=given["name"])
    if "state" in given:
        rows = rows.filter(is_active=given["state"] == "active")
    return rows


KIND = RecordKind(
    name="taxpayers",
    singular="taxpayer",
    parameter="taxpayer",
    names="TIN or TIN:ROB, as in the header onbehalfof.",
    find=find_taxpayer,
    address=lambda row: str(row.identifier),
    record=TaxpayerRecord,
    duty=Duty.REGISTER,
    also_read_by=frozenset({Duty.GRANT, Duty.ISSUE}),
)
LISTING = Listing(
    "taxpayers", "List taxpayers", TaxpayerRecord, ("tin", "rob"), _rows, TaxpayerFilters
)
CREATE = ApiTask(
    "",
    REGISTER_TAXPAYER,
    NewTaxpayerBody,
    note="Safe to repeat: one that is registered under this name is answered with 200.",
)
CHANGE = ApiTask("", RENAME_TAXPAYER, RenameBody)
TASKS = tasks_by_reason(vars(taxpayers))
