"""Every sign-in page on one screen: no sign-up, no e-mail, no social login."""

from allauth.account import views
from django.urls import include, path

from identity.staff.accounts.own_sign_in import (
    NewRecoveryCodes,
    RemovePasskey,
    RemoveTotp,
    RenamePasskey,
    SetUpPasskey,
    SetUpTotp,
    choose_own_password,
)
from identity.staff.sessions.limits import stay_signed_in

urlpatterns = [
    path("", views.login, name="account_login"),
    path("out/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("stay/", stay_signed_in, name="stay_signed_in"),
    path("again/", views.reauthenticate, name="account_reauthenticate"),
    path("password/", views.password_change, name="account_change_password"),
    path("password/first/", views.password_set, name="account_set_password"),
    path("password/own/", choose_own_password, name="choose_own_password"),
    path("second/totp/activate/", SetUpTotp.as_view(), name="mfa_activate_totp"),
    path("second/totp/deactivate/", RemoveTotp.as_view(), name="mfa_deactivate_totp"),
    path("second/webauthn/add/", SetUpPasskey.as_view(), name="mfa_add_webauthn"),
    path("second/webauthn/keys/<int:pk>/edit/", RenamePasskey.as_view(), name="mfa_edit_webauthn"),
    path(
        "second/webauthn/keys/<int:pk>/remove/",
        RemovePasskey.as_view(),
        name="mfa_remove_webauthn",
    ),
    path(
        "second/recovery-codes/generate/",
        NewRecoveryCodes.as_view(),
        name="mfa_generate_recovery_codes",
    ),
    path("second/", include("allauth.mfa.urls")),
]
