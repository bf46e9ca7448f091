"""The hops of a login, and the functions in which each of them begins."""

# Time in a function counts for its hop until it calls one of another hop.
HOPS: dict[str, tuple[str, ...]] = {
    "read the request, hash the secret": (
        "tokens.endpoint.view:_begin",
        "tokens.endpoint.view:_read",
    ),
    "authenticate: one query": ("tokens.endpoint.validator:LoginValidator.authenticate_client",),
    "decide": ("taxpayers.rules:decide",),
    "claims and signature": ("tokens.access_tokens.issuing:access_token",),
    "record and count": ("tokens.endpoint.recording:record",),
    "answer": ("tokens.endpoint.response:issued",),
    "log line and metrics": ("logging:Logger.info", "tokens.metrics:count_login"),
    "oauthlib and the toolkit": ("tokens.endpoint.view:TokenView.create_token_response",),
    "the view itself": ("tokens.endpoint.view:TokenView.dispatch",),
    "Django": (
        "django.core.handlers.wsgi:WSGIHandler.__call__",
        "django.http.response:HttpResponseBase.close",
    ),
}
