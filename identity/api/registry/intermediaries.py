"""`/intermediaries`: taxpayers in the role of acting for others."""

from typing import Any

from rest_framework import serializers

from identity.api.framework import kinds
from identity.api.framework.fields import Body, End, Moment, Reason, Taxpayer
from identity.api.framework.query import Filters
from identity.api.registry.taxpayers import Tin, condition_of
from taxpayers.duties import Duty
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary
from taxpayers.services import intermediaries, named, register_intermediary
from taxpayers.services.ends import END_INTERMEDIARY_EARLIER, EXTEND_INTERMEDIARY
from taxpayers.services.intermediaries import REGISTER_INTERMEDIARY
from taxpayers.validation import taxpayer_notation


class IntermediaryRecord(serializers.Serializer[Intermediary]):
    """An intermediary."""

    taxpayer = serializers.CharField(source="taxpayer.identifier", help_text="TIN or TIN:ROB.")
    name = serializers.CharField(source="taxpayer.name")
    is_active = serializers.BooleanField()
    active_until = Moment(allow_null=True, help_text="Its last moment; null: no end.")
    registered_at = Moment(source="created_at")


class IntermediaryRowBody(Body):
    """An intermediary, whose taxpayer is registered."""

    taxpayer = Taxpayer()
    active_until = End(required=False, allow_null=True, source="until")


class NewIntermediaryBody(IntermediaryRowBody):
    """What is needed to make a taxpayer an intermediary."""

    reason = Reason(required=False)


class IntermediaryFilters(Filters):
    tin = Tin(
        required=False,
        source="taxpayer__tin",
        help_text="Those with this TIN, whatever their ROB number.",
    )


def _register(_row: None, *, taxpayer: TaxpayerId, **given: Any) -> Intermediary:
    return register_intermediary(taxpayer=named.find_taxpayer(taxpayer), **given)


KIND = kinds.RecordKind(
    name="intermediaries",
    singular="intermediary",
    parameter="taxpayer",
    names="TIN or TIN:ROB of the intermediary.",
    address=lambda row: str(row.taxpayer.identifier),
    where=lambda text: condition_of(taxpayer_notation().parse(text), "taxpayer__"),
    record=IntermediaryRecord,
    duty=Duty.REGISTER,
    also_read_by=frozenset({Duty.GRANT}),
    summary="List intermediaries",
    order=("pk",),
    rows=lambda: Intermediary.objects.select_related("taxpayer"),
    filters=IntermediaryFilters,
    create=kinds.ApiTask(
        "",
        REGISTER_INTERMEDIARY,
        NewIntermediaryBody,
        _register,
        "Safe to repeat: one that is registered until the same moment is answered with 200.",
    ),
    tasks=(
        *kinds.tasks_by_reason(vars(intermediaries)),
        *kinds.end_tasks(
            "Intermediary", "active_until", EXTEND_INTERMEDIARY, END_INTERMEDIARY_EARLIER
        ),
    ),
)
