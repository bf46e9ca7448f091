"""Rows for tests, one line each: `make.credential(system_user__taxpayer__tin="C1")`."""

from tests.support import factories

taxpayer = factories.TaxpayerFactory.create
intermediary = factories.IntermediaryFactory.create
permission = factories.GrantedPermissionFactory.create
permission_request = factories.PermissionRequestFactory.create
system_user = factories.SystemUserFactory.create
credential = factories.CredentialFactory.create
protected_api = factories.ProtectedApiFactory.create
api_secret = factories.ProtectedApiSecretFactory.create
