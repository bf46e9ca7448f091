"""The admin pages of staff accounts and groups, in the look of the other pages.

The second factor is not here: staff manage their own on the sign-in pages.
"""

from django.contrib.auth.admin import GroupAdmin, UserAdmin
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm


class UserAccounts(UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # as unfold wants it
    """Django's page, with the class and the forms of unfold: others would hide its fields."""

    # There are many permissions: in a plain list one click would deselect all others.
    filter_horizontal = ("user_permissions",)
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


class GroupAccounts(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # as unfold wants it
    """The same for groups."""
