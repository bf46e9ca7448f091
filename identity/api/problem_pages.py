"""The page of each kind of problem, to which its `type` leads; and the answer to a wrong path."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.problems import PROBLEMS, Problem, problem_type
from identity.api.framework.view import ManagementView


class ProblemPage(ManagementView):
    """What a kind of problem means, and what to do. No token is needed."""

    authentication_classes = ()
    permission_classes = ()
    http_method_names = ("get", "head")

    def get(self, request: Request, kind: str) -> Response:
        """One row of the table of problems."""
        if kind not in PROBLEMS:
            raise Problem("not_found", "There is no such kind of problem.")
        row = PROBLEMS[kind]
        return Response(
            {
                "type": problem_type(kind),
                "title": row.title,
                "status": row.status,
                "advice": row.advice,
            }
        )


class NoSuchAddress(ManagementView):
    """Every other path below the management API, whatever the method."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise Problem(
            "not_found",
            "There is nothing at this path. All addresses, without a slash at their end, are in"
            f" {settings.STAFF_URL.rstrip('/')}/api/v1/management/openapi.json.",
        )


problem_page = ProblemPage.as_view()
no_such_address = NoSuchAddress.as_view()
