"""Staff accounts and groups in the look of the other pages; nothing of allauth's is shown.

Staff manage their own second factor on their own sign-in pages.
"""

from django.contrib.auth.admin import GroupAdmin, UserAdmin
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm


class UserAccounts(UserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]  # as unfold wants it
    """Django's own: only with unfold's class and forms has it a way to add and fields to see."""

    # A few groups fit in one list. Of permissions a stray click there would drop all the others.
    filter_horizontal = ("user_permissions",)
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


class GroupAccounts(GroupAdmin, ModelAdmin):  # type: ignore[misc]  # as unfold wants it
    """The same for groups."""
