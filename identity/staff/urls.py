"""Every path where staff pages are served: the public ones, and those of staff."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from identity.staff.accounts.pages.sign_in import redirect_to_sign_in
from identity.staff.expiring.page import ending_soon
from identity.staff.search.views import search_view
from identity.urls import urlpatterns as public

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
    path("signin/", include("identity.staff.accounts.urls")),
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
