"""Which trace a request belongs to: W3C Trace Context, only from trusted proxies.

A stranger could otherwise have each of its logins recorded, or put them into the traces of others.
"""

from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tokens.request.proxies import TrustedProxies

_propagator = TraceContextTextMapPropagator()
_HEADERS = (b"traceparent", b"tracestate")


def parent_of(scope: Mapping[str, Any], proxies: TrustedProxies) -> Context:
    """The context of the caller's span; an empty one, which begins a trace, if there is none."""
    client = scope.get("client")
    if client is None or not proxies.trust(client[0]):
        return Context()
    carrier: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _HEADERS:
            key, text = name.decode(), value.decode("latin-1")
            # Two of the first are none: with a comma it has no valid form.
            carrier[key] = f"{carrier[key]},{text}" if key in carrier else text
    return _propagator.extract(carrier, Context())
