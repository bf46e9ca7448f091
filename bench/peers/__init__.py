"""What the service is compared with: a bare Django view, and django-oauth-toolkit as it comes."""
