"""How a system user proves who it is: with a secret, or with a private key."""
