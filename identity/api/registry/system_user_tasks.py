"""Tasks of a system user itself: block it, limit it, bind its tokens."""

from identity.api.framework.fields import Body, Choice, Reason, Taxpayers, Texts
from identity.api.framework.kinds import ApiTask
from identity.api.registry.ends import end_tasks
from identity.api.registry.taxpayers import tasks_by_reason
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.services import system_users
from taxpayers.services.ends import END_SYSTEM_USER_EARLIER, EXTEND_SYSTEM_USER
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.login_method.binding import BIND_TOKENS

_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}


class LimitsBody(Body):
    """What it may do for other taxpayers at most; both empty: whatever they grant."""

    allowed_permissions = Texts(source="permissions")
    allowed_taxpayers = Taxpayers(source="taxpayers")
    reason = Reason()


class BindingBody(Body):
    """What its tokens must be bound to."""

    token_binding = Choice(_BINDINGS, source="binding")
    reason = Reason()


TASKS = (
    *end_tasks("SystemUser", "expires_at", EXTEND_SYSTEM_USER, END_SYSTEM_USER_EARLIER),
    *tasks_by_reason(vars(system_users)),
    ApiTask("limits", LIMIT_SYSTEM_USER, LimitsBody, verb="limit"),
    ApiTask("bind-tokens", BIND_TOKENS, BindingBody),
)
