"""Every path where staff pages are served: the public ones, the sign-in, and those of staff."""

from allauth.account import views
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import DeactivateTOTPView
from allauth.mfa.webauthn.views import EditWebAuthnView, RemoveWebAuthnView
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from identity.staff.accounts.own_sign_in import (
    SetUpPasskey,
    choose_own_password,
    recorded,
    set_up_totp,
)
from identity.staff.accounts.sign_in import redirect_to_sign_in
from identity.staff.expiring.page import ending_soon
from identity.staff.search.views import search_view
from identity.staff.sessions import stay_signed_in
from identity.urls import urlpatterns as public

_KEY = "second/webauthn/keys/<int:pk>"
# No sign-up, no e-mail, no social login.
_sign_in: list[URLPattern | URLResolver] = [
    path("", views.login, name="account_login"),
    path("out/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("stay/", stay_signed_in, name="stay_signed_in"),
    path("again/", views.reauthenticate, name="account_reauthenticate"),
    path("password/", views.password_change, name="account_change_password"),
    path("password/first/", views.password_set, name="account_set_password"),
    path("password/own/", choose_own_password, name="choose_own_password"),
    path("second/totp/activate/", set_up_totp, name="mfa_activate_totp"),
    path("second/totp/deactivate/", recorded(DeactivateTOTPView), name="mfa_deactivate_totp"),
    path("second/webauthn/add/", SetUpPasskey.as_view(), name="mfa_add_webauthn"),
    path(f"{_KEY}/edit/", recorded(EditWebAuthnView), name="mfa_edit_webauthn"),
    path(f"{_KEY}/remove/", recorded(RemoveWebAuthnView), name="mfa_remove_webauthn"),
    path(
        "second/recovery-codes/generate/",
        recorded(GenerateRecoveryCodesView),
        name="mfa_generate_recovery_codes",
    ),
    path("second/", include("allauth.mfa.urls")),
]

admin.autodiscover()  # a command that serves, such as `demo`, has not loaded the pages

# In the admin's namespace, so that they get its frame and its content security policy.
_of_staff = [
    path("ending-soon/", admin.site.admin_view(ending_soon), name="ending_soon"),
    *admin.site.urls[0],
]
urlpatterns: list[URLPattern | URLResolver] = [
    *public,
    path("", RedirectView.as_view(pattern_name="admin:index"), name="start"),
    path("language/", set_language, name="set_language"),
    path("signin/", include(_sign_in)),
    # The admin's own pages for this know neither the second factor nor the lock-out.
    path("admin/login/", redirect_to_sign_in),
    *(
        path(f"admin/{page}/", RedirectView.as_view(pattern_name="admin:index"))
        for page in ("password_change/done", "taxpayers", "tokens", "staff")  # the theme's pages
    ),
    path("admin/logout/", RedirectView.as_view(pattern_name="account_logout")),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/search/", search_view, name="staff_search"),  # instead of the theme's own
    path("admin/", (_of_staff, *admin.site.urls[1:])),
]
handler404 = "identity.staff.error_pages.not_found"
handler403 = "identity.staff.error_pages.permission_denied"
handler400 = "identity.staff.error_pages.bad_request"
