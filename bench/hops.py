"""The hops of a login, and the functions in which each of them begins."""

# Time in a function counts for its hop until it calls one of another hop.
HOPS: dict[str, tuple[str, ...]] = {
    "read the request, hash the secret": ("tokens.views:_begin", "tokens.views:_read"),
    "authenticate: one query": ("tokens.validator:LoginValidator.authenticate_client",),
    "decide": ("taxpayers.rules:decide",),
    "claims and signature": ("tokens.issuing:access_token",),
    "record and count": ("tokens.audit:record",),
    "answer": ("tokens.answers:issued",),
    "log line and metrics": ("logging:Logger.info", "tokens.metrics:count_login"),
    "oauthlib and the toolkit": ("tokens.views:TokenView.create_token_response",),
    "the view itself": ("tokens.views:TokenView.dispatch",),
    "Django": (
        "django.core.handlers.wsgi:WSGIHandler.__call__",
        "django.http.response:HttpResponseBase.close",
    ),
}
