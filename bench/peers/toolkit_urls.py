"""The toolkit's own token view, at the path that all are asked at."""

from django.urls import path
from oauth2_provider.views import TokenView

urlpatterns = [path("connect/token", TokenView.as_view())]
