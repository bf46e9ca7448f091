"""Which of Django's default permissions the models have: to view.

Rows are changed only by services, so the other permissions are named after the changes: one for
each action of staff. Which role has which permission: identity/staff/accounts/roles.py.
"""

VIEW_ONLY = ("view",)
