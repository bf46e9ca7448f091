"""Limits of credentials: for whom and with what they may act, and from where they may be used."""
