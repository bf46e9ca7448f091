"""Registers every kind of record that staff see. Django finds this module by its name."""

from django.contrib import admin

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
from taxpayers import models as registry
from tokens.models import LoginEvent, ProtectedApi, SigningKey

# Registered by the libraries: the account pages of Django and allauth, which would write without a
# record in the history, and the toolkit's models, most of which this service does not use.
for _model in [*admin.site._registry]:
    admin.site.unregister(_model)

admin.site.register(registry.Taxpayer, TaxpayerAdmin)
admin.site.register(registry.Intermediary, IntermediaryAdmin)
admin.site.register(registry.GrantedPermission, GrantedPermissionAdmin)
admin.site.register(registry.PermissionCode, PermissionCodeAdmin)
admin.site.register(registry.PermissionRequest, PermissionRequestAdmin)
admin.site.register(registry.SystemUser, SystemUserAdmin)
admin.site.register(registry.Change, HistoryAdmin)
admin.site.register(LoginEvent, LoginEventAdmin)
admin.site.register(SigningKey, SigningKeyAdmin)
admin.site.register(ProtectedApi, ProtectedApiAdmin)
admin.site.register(WebhookEndpoint, WebhookAdmin)
admin.site.register(StaffAccount, StaffAccountAdmin)
admin.site.register(StaffSignIn, SignInAdmin)
