"""The client certificates by which system users are recognised (RFC 8705): their names."""
