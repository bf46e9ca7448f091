"""A later and an earlier end of a record: two tasks, neither of which goes the other way."""

from identity.api.framework.fields import Body, End, Reason
from identity.api.framework.kinds import ApiTask
from taxpayers.operations import Operation


def end_tasks(
    kind: str,
    field: str,
    extend: Operation,
    end_earlier: Operation,
    body: type[Body] = Body,
    note: str = "",
) -> tuple[ApiTask, ApiTask]:
    """Of this kind of record; `field` is its last moment there, `body` has what comes besides."""
    last = End(allow_null=True, source="until", help_text="null: no end.")
    later = {"__doc__": "A later end.", field: last}
    earlier = {"__doc__": "An earlier end.", field: End(source="until")}
    why = {"reason": Reason()}
    return (
        ApiTask("extend", extend, type(f"Extend{kind}Body", (body,), later | why), note=note),
        ApiTask("end-earlier", end_earlier, type(f"EndEarlier{kind}Body", (body,), earlier | why)),
    )
