"""Where the clients of these tests come from; no import of Django's models."""

MTLS_URL = "https://mtls.id.example.org"
PROXY, STRANGER = "127.0.0.1", "203.0.113.7"
