"""Every model of the staff pages. Django finds this module by its name."""

from identity.staff.framework.filtering.saved_view import SavedView

__all__ = ["SavedView"]
