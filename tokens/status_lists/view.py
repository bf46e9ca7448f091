"""`GET /status/…`: signed status lists, and where they are (contract 2; TSL sections 8 and 9)."""

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse

from tokens.access_tokens.claims import list_uri
from tokens.http import error_response, read_only
from tokens.status_lists.format import MEDIA_TYPE
from tokens.status_lists.publication import UnknownList, status_lists

# With TTL and the time until a change is published it is less than the contract's 10 seconds.
_PUBLIC = {"Cache-Control": "public, max-age=1", "Access-Control-Allow-Origin": "*"}
_MOST_DIGITS = 6


@read_only
def aggregation(request: HttpRequest) -> HttpResponse:
    """`GET /status`: the addresses of all lists (section 9.3)."""
    try:
        numbers = status_lists().numbers()
    except DatabaseError:
        return _unavailable()
    uris = [list_uri(settings.AUTH_URL, number) for number in numbers]
    return JsonResponse({"status_lists": uris}, headers=_PUBLIC)


@read_only
def status_list(request: HttpRequest, number: str) -> HttpResponse:
    """`GET /status/<number>`: one list."""
    # Written in only one way: the address is the name of the list.
    if not (number.isascii() and number.isdecimal() and number == str(int(number[:_MOST_DIGITS]))):
        return _unknown()
    try:
        signed = status_lists().signed(int(number))
    except UnknownList:
        return _unknown()
    except DatabaseError:
        return _unavailable()
    return HttpResponse(signed, content_type=MEDIA_TYPE, headers=_PUBLIC)


def _unknown() -> HttpResponse:
    # Not to be stored either: the next list may begin at any moment.
    return error_response(404, "not_found", "There is no such status list.")


def _unavailable() -> HttpResponse:
    text = "The status lists cannot be read; try again."
    return error_response(503, "temporarily_unavailable", text, {"Retry-After": "1"})
