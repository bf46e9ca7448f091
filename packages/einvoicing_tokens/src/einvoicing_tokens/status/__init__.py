"""Whether a token was ended early: by the status lists, or by asking (RFC 7662)."""
