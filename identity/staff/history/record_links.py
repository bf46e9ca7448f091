"""From a change to the page of its record, for people who may see it."""

from functools import cache

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from taxpayers.models import Change


def record_link(request: HttpRequest, change: Change) -> str:
    """The address of the record; empty if it has no page, or none for this person."""
    model = _models().get(change.object_type)
    if model is None or not change.object_id:
        return ""
    opts = model._meta
    if not request.user.has_perm(f"{opts.app_label}.view_{opts.model_name}"):
        return ""
    return reverse(
        f"admin:{opts.app_label}_{opts.model_name}_change", args=[quote(change.object_id)]
    )


@cache
def _models() -> dict[str, type[Model]]:
    """Every kind of record with a page, by the name that the history stores."""
    return {
        str(model._meta.model_name): model
        for model in apps.get_models()
        if admin.site.is_registered(model)
    }
