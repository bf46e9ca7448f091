"""What is read from the identity service: metadata and keys, stored for a while."""
