"""What developers test ERP systems with: the sandbox (only ENVIRONMENT=test), the client check."""
