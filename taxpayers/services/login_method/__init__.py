"""How a system user proves who it is: with a secret, a private key or a certificate."""
