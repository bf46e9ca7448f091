"""Which changes of the history are events, and what the events are called. Pure."""

from taxpayers.actions import ACTIONS

_EVENTS = {(action.of, action.name): action.event for action in ACTIONS if action.event}
TEST = "webhook.test"
_WITH_END = ("credential", "system_user", "permission", "intermediary")
ENDS_SOON = {kind: f"{kind}.ends_soon" for kind in _WITH_END}
# What an endpoint can choose from; TEST is sent to every one.
EVENT_TYPES = tuple(sorted({*_EVENTS.values(), *ENDS_SOON.values()}))


def event_type_of(object_type: str, action: str) -> str:
    """The type of the event; empty: the change is none."""
    return _EVENTS.get((object_type, action), "")
