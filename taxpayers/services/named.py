"""Finds what people and programs name; the one place that says that it is not registered."""

from collections.abc import Collection

from django.utils.translation import gettext as _

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary, PermissionCode, Taxpayer
from taxpayers.validation import ServiceError, validate_known


class NotRegistered(ServiceError):
    """What is named in this field is not registered."""

    def __init__(self, text: str, /, *fields: str, **values: object) -> None:
        super().__init__(text, "not_registered", *fields, **values)


def no_taxpayer(identifier: object) -> str:
    """That there is no taxpayer with this identifier, or with these."""
    return _(
        "There is no taxpayer {identifier}. Check the identifier, or register the taxpayer first."
    ).format(identifier=identifier)


def find_taxpayer(identifier: TaxpayerId, field: str = "taxpayer") -> Taxpayer:
    """Raises NotRegistered."""
    row = Taxpayer.objects.filter(tin=identifier.tin, rob=identifier.rob).first()
    if row is None:
        raise NotRegistered(no_taxpayer(identifier), field)
    return row


def role_of(taxpayer: Taxpayer) -> Intermediary:
    """Its role as an intermediary. Raises NotRegistered."""
    row: Intermediary | None = getattr(taxpayer, "intermediary", None)
    if row is None:
        raise NotRegistered(
            "{identifier} is not an intermediary. Register it as an intermediary first.",
            "intermediary",
            identifier=taxpayer.identifier,
        )
    return row


def validate_codes(codes: Collection[str], *fields: str) -> list[str]:
    """Permission codes, sorted, each once. Raises ServiceError as `validate_known`."""
    known = set(PermissionCode.objects.values_list("code", flat=True))
    return validate_known(codes, known, _("permission code"), *fields)
