"""Tokens that are bound to a key of their client: DPoP (RFC 9449)."""
