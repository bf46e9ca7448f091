"""What it means that a system user may use the management API, for who has just given it that."""

from taxpayers.duties import SCOPE_OF_DUTY, Duty, are_for_management, duties_of, must_be_separate
from taxpayers.models import SystemUser


def duty_note(row: SystemUser) -> dict[str, str]:
    """What the answer of the command says besides; empty for all other system users."""
    if not are_for_management(row.scopes):
        return {}
    duties = duties_of(row.scopes.split())
    may = ", ".join(duty for duty in Duty if duty in duties) or "read"
    note = f"{row.client_id} may use the management API: {may}. Only operators can change it."
    if not must_be_separate(duties):
        return {"note": note}
    scopes = ", ".join(SCOPE_OF_DUTY[duty] for duty in Duty if duty in duties)
    danger = (
        " TAKE CARE: it registers or grants AND issues credentials. One stolen token of it can let"
        " in an invented client, and no second person is needed. Better: a system user for each"
        f" duty, with one of these scopes each: {scopes}."
    )
    return {"note": note + danger}
