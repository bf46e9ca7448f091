"""The import of each kind of record: its permission, its texts and its example."""

from django.utils.translation import gettext_lazy, ngettext_lazy

from identity.staff.imports.import_task import ImportTask


class ImportTaxpayers(ImportTask):
    kind_name = "taxpayers"
    column_notes = gettext_lazy("rob can be empty. active is yes or no; empty means yes.")
    example = (
        ("C2581234010", "Kedai Runcit Seri Wangsa Sdn Bhd", "", "yes"),
        ("C2581234080", "Lim & Daughters Hardware", "202301045678", "no"),
    )

    counted = ngettext_lazy("{count} taxpayer", "{count} taxpayers", "count")


class ImportIntermediaries(ImportTask):
    kind_name = "intermediaries"
    column_notes = gettext_lazy(
        "rob can be empty. active_until is the last day; empty means no end date."
    )
    example = (("C2590001010", "", "2028-12-31"), ("C2590001020", "202301045678", ""))

    counted = ngettext_lazy("{count} intermediary", "{count} intermediaries", "count")


class ImportPermissions(ImportTask):
    kind_name = "permissions"
    column_notes = gettext_lazy(
        "taxpayer and intermediary are TIN or TIN:ROB. codes are separated by blanks. valid_from is"
        " the first day; empty means now. valid_until is the last day; empty means no end date."
        " paper_form is the number of the form that the taxpayer has signed."
    )
    example = (
        ("C2581234010", "C2590001010", "documents:submit documents:view", "", "2028-12-31", "F-1"),
        ("C2581234080:202301045678", "C2590001010", "documents:view", "2027-01-01", "", ""),
    )

    counted = ngettext_lazy("{count} permission", "{count} permissions", "count")


class ImportSystemUsers(ImportTask):
    kind_name = "system_users"
    column_notes = gettext_lazy(
        "taxpayer is TIN or TIN:ROB. scopes are separated by blanks. Empty scopes or"
        " logins_per_minute mean the standard values. expires_at is the last day; empty means no"
        " end date."
    )
    example = (
        ("C2581234010", "AutoCount Wangsa", "", "", ""),
        ("C2581234080:202301045678", "SQL Account", "InvoicingAPI", "60", "2028-12-31"),
    )

    counted = ngettext_lazy("{count} system user", "{count} system users", "count")
