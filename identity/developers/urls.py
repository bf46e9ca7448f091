"""The pages for developers of ERP systems: one for each reason of a refusal."""

from django.urls import URLPattern, path

from identity.developers.errors import error_page
from tokens.refusals.help_page import help_path
from tokens.refusals.table import REFUSALS

urlpatterns: list[URLPattern] = [
    path(help_path(reason).removeprefix("/"), error_page(reason)) for reason in REFUSALS
]
