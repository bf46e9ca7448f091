"""Why the confirm page does not open: each has its own text for the person who sees it. Pure."""

from dataclasses import dataclass

from taxpayers.actions import marked as _

_AGAIN = _("Go back to the portal and open the request there again.")


@dataclass(frozen=True, slots=True)
class RefusalText:
    """`what` happened, and `what_to_do`; marked for translation. Nothing was decided."""

    status: int
    what: str
    what_to_do: str = _AGAIN


TEXTS = {
    "no_ticket": RefusalText(
        400,
        _("Requests are confirmed in the portal of the tax authority."),
        _("Sign in to the portal, and open the request there."),
    ),
    "malformed_ticket": RefusalText(400, _("The portal's ticket cannot be read.")),
    "incomplete_ticket": RefusalText(
        400, _("The portal's ticket does not say in which capacity you act, or how you signed in.")
    ),
    "no_person": RefusalText(400, _("The portal's ticket does not say who you are.")),
    "other_audience": RefusalText(400, _("The portal's ticket is for another service.")),
    "not_a_portal": RefusalText(
        403,
        _("The ticket is not from a portal of the tax authority."),
        _("Do not go on. Open the portal of the tax authority yourself, and sign in there."),
    ),
    "other_portal": RefusalText(
        403, _("The ticket is from a system of the portal that does not decide such requests.")
    ),
    "expired_ticket": RefusalText(
        400, _("The portal's ticket is too old: it is valid for five minutes at most.")
    ),
    "long_ticket": RefusalText(
        400, _("The portal's ticket is valid for longer than five minutes, so it is not accepted.")
    ),
    "replayed_ticket": RefusalText(
        400, _("The portal's ticket was used before. It opens this page once only.")
    ),
    "other_request": RefusalText(400, _("The portal's ticket is for another request.")),
    "other_taxpayer": RefusalText(
        403,
        _("This request is to another taxpayer than the one that you act for."),
        _(
            "In the portal, choose the taxpayer that is asked. If someone sent you the link, do not"
            " go on."
        ),
    ),
    "unknown_request": RefusalText(
        404, _("There is no such request."), _("Ask who sent you the link for a new request.")
    ),
    "not_open": RefusalText(
        409,
        _("This request can no longer be decided."),
        _("What was decided stands in the portal. If needed, let who asked do so again."),
    ),
    "refused": RefusalText(409, _("The request cannot be approved so.")),
    "page_too_old": RefusalText(400, _("This page was open for too long. Nothing was decided.")),
}


@dataclass(eq=False)  # not frozen: Python itself sets the traceback of an exception
class ConfirmRefused(Exception):
    """`name` is one of TEXTS; `detail` is what the registry says besides."""

    name: str
    detail: str = ""
