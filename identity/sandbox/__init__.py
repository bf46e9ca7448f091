"""What developers test ERP systems with: the sandbox (ENVIRONMENT=test alone), the client check."""
