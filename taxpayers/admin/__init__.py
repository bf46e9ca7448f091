"""The registry in the staff's admin: every change is a task that calls `taxpayers.services`."""

from django.apps import apps
from django.contrib import admin
from django.db.models import Model

from taxpayers.admin.changes import ChangeAdmin
from taxpayers.admin.intermediaries import IntermediaryAdmin
from taxpayers.admin.permissions import GrantedPermissionAdmin, PermissionCodeAdmin
from taxpayers.admin.system_users import SystemUserAdmin
from taxpayers.admin.taxpayers import TaxpayerAdmin
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)

# The toolkit registers our application model, and tables that this service never fills.
_toolkit: list[type[Model]] = [*apps.get_app_config("oauth2_provider").get_models(), SystemUser]
for _model in _toolkit:
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)

admin.site.register(Taxpayer, TaxpayerAdmin)
admin.site.register(Intermediary, IntermediaryAdmin)
admin.site.register(GrantedPermission, GrantedPermissionAdmin)
admin.site.register(PermissionCode, PermissionCodeAdmin)
admin.site.register(SystemUser, SystemUserAdmin)
admin.site.register(Change, ChangeAdmin)
