"""The import of each kind of record: its permission, its texts and its example."""

from django.utils.translation import gettext_lazy, ngettext

from identity.staff.imports.import_task import ImportTask


class ImportTaxpayers(ImportTask):
    name = "import_registry"
    kind_name = "taxpayers"
    title = gettext_lazy("Import taxpayers")
    description = gettext_lazy("Registers many taxpayers from a file.")
    column_notes = gettext_lazy("rob can be empty. active is yes or no; empty means yes.")
    example = (
        ("C2581234010", "Kedai Runcit Seri Wangsa Sdn Bhd", "", "yes"),
        ("C2581234080", "Lim & Daughters Hardware", "202301045678", "no"),
    )

    def counted(self, count: int) -> str:
        return ngettext("{count} taxpayer", "{count} taxpayers", count).format(count=count)


class ImportIntermediaries(ImportTask):
    name = "import_intermediaries"
    action = "register_intermediary"
    kind_name = "intermediaries"
    title = gettext_lazy("Import intermediaries")
    description = gettext_lazy(
        "Makes many taxpayers intermediaries. Each must be registered as a taxpayer first."
    )
    column_notes = gettext_lazy(
        "rob can be empty. active_until is the last day; empty means no end date."
    )
    example = (("C2590001010", "", "2028-12-31"), ("C2590001020", "202301045678", ""))

    def counted(self, count: int) -> str:
        text = ngettext("{count} intermediary", "{count} intermediaries", count)
        return text.format(count=count)


class ImportPermissions(ImportTask):
    name = "import_permissions"
    action = "grant_permission"
    kind_name = "permissions"
    title = gettext_lazy("Import permissions")
    description = gettext_lazy(
        "Grants many permissions. The taxpayers and the intermediaries must be registered first."
    )
    column_notes = gettext_lazy(
        "taxpayer and intermediary are TIN or TIN:ROB. codes are separated by blanks. valid_from is"
        " the first day; empty means now. valid_until is the last day; empty means no end date."
    )
    example = (
        ("C2581234010", "C2590001010", "documents:submit documents:view", "", "2028-12-31"),
        ("C2581234080:202301045678", "C2590001010", "documents:view", "2027-01-01", ""),
    )

    def counted(self, count: int) -> str:
        return ngettext("{count} permission", "{count} permissions", count).format(count=count)


class ImportSystemUsers(ImportTask):
    name = "import_system_users"
    action = "register_system_user"
    kind_name = "system_users"
    title = gettext_lazy("Import system users")
    description = gettext_lazy(
        "Registers many system users. They get no secret, so they cannot log in yet: no file ever"
        " has a secret. Issue a secret for each when you hand it over to its operator."
    )
    column_notes = gettext_lazy(
        "taxpayer is TIN or TIN:ROB. scopes are separated by blanks. Empty scopes or"
        " logins_per_minute mean the standard values. expires_at is the last day; empty means no"
        " end date."
    )
    example = (
        ("C2581234010", "AutoCount Wangsa", "", "", ""),
        ("C2581234080:202301045678", "SQL Account", "InvoicingAPI", "60", "2028-12-31"),
    )

    def counted(self, count: int) -> str:
        return ngettext("{count} system user", "{count} system users", count).format(count=count)
