"""The public page of each reason for a refusal, to which its answer links (contract 1)."""

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join

from tokens.http import View, read_only
from tokens.refusals.description import describe_in_general
from tokens.refusals.table import REFUSALS

_CACHEABLE = {"Cache-Control": "public, max-age=3600"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
{causes}
<dl>
<dt>Who can fix it</dt><dd>{fixed_by}</dd>
<dt>Reason</dt><dd><code>{reason}</code></dd>
<dt>Answer</dt><dd><code>{status} {error}</code></dd>
</dl>
</body>
</html>
"""


def error_page(reason: str) -> View:
    """The view of the page of this reason: the same for everybody, made once."""
    refusal = REFUSALS[reason]
    page = format_html(
        _PAGE,
        title=refusal.staff_text,
        causes=format_html_join("\n", "<p>{}</p>", ((c,) for c in describe_in_general(reason))),
        fixed_by=refusal.fixed_by,
        reason=str(reason),
        status=refusal.status,
        error=refusal.error,
    )

    @read_only
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(page, headers=_CACHEABLE)

    return view
