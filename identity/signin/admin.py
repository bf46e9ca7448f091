"""Staff's accounts and groups in the admin's look; nothing of allauth's is there.

Staff keep their own second factor, on pages of their own.
"""

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

models: list[type[Model]] = [EmailAddress, EmailConfirmation, Authenticator, User, Group]
for model in models:
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(User)
class Accounts(UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # as unfold wants it
    """Django's own: only with unfold's class and forms has it a way to add and fields to see."""

    # A few groups fit in one list. Of permissions a stray click there would drop all the others.
    filter_horizontal = ("user_permissions",)
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class Groups(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # as unfold wants it
    """The same for groups."""
