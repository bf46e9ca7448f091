"""Registers every kind of record that staff see. Django finds this module by its name."""

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model

from identity.staff.accounts.pages.accounts import StaffAccountAdmin
from identity.staff.accounts.pages.sign_ins import SignInAdmin
from identity.staff.history.history_admin import HistoryAdmin
from identity.staff.logins.logins import LoginEventAdmin
from identity.staff.logins.signing_keys import SigningKeyAdmin
from identity.staff.models import StaffAccount, StaffSignIn
from identity.staff.protected_apis import ProtectedApiAdmin
from identity.staff.registry.granted_permissions import GrantedPermissionAdmin
from identity.staff.registry.intermediaries import IntermediaryAdmin
from identity.staff.registry.permission_codes import PermissionCodeAdmin
from identity.staff.registry.permission_requests import PermissionRequestAdmin
from identity.staff.registry.taxpayers import TaxpayerAdmin
from identity.staff.system_users.system_users import SystemUserAdmin
from identity.staff.webhooks import WebhookAdmin
from identity.webhooks.models import WebhookEndpoint
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    PermissionRequest,
    SystemUser,
    Taxpayer,
)
from tokens.models import LoginEvent, ProtectedApi, SigningKey

# Registered by the libraries: the account pages of Django and allauth, which would write without a
# record in the history, and the toolkit's models, most of which this service does not use.
_FOREIGN: list[type[Model]] = [
    EmailAddress,
    EmailConfirmation,
    Authenticator,
    User,
    Group,
    SystemUser,
    *apps.get_app_config("oauth2_provider").get_models(),
]
for _model in _FOREIGN:
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)

admin.site.register(Taxpayer, TaxpayerAdmin)
admin.site.register(Intermediary, IntermediaryAdmin)
admin.site.register(GrantedPermission, GrantedPermissionAdmin)
admin.site.register(PermissionCode, PermissionCodeAdmin)
admin.site.register(PermissionRequest, PermissionRequestAdmin)
admin.site.register(SystemUser, SystemUserAdmin)
admin.site.register(Change, HistoryAdmin)
admin.site.register(LoginEvent, LoginEventAdmin)
admin.site.register(SigningKey, SigningKeyAdmin)
admin.site.register(ProtectedApi, ProtectedApiAdmin)
admin.site.register(WebhookEndpoint, WebhookAdmin)
admin.site.register(StaffAccount, StaffAccountAdmin)
admin.site.register(StaffSignIn, SignInAdmin)
