"""What axe-core finds on a page: each serious or critical violation in one line."""

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe

_AXE = Axe()
_OPTIONS = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
THEME_RULES = ("color-contrast", "html-has-lang", "html-lang-valid", "link-in-text-block")


def violations(page: Any, rules: Sequence[str] = ()) -> list[str]:
    """Of these rules, or of all. THEME_RULES are those that another theme or language can break."""
    options = _OPTIONS | ({"runOnly": {"type": "rule", "values": [*rules]}} if rules else {})
    found = _AXE.run(page, options=options).response["violations"]
    return [
        f"{page.url}: {rule['id']} ({rule['help']}): "
        + "; ".join(
            f"{node['target']} {node['any'][0]['message'][:160] if node['any'] else ''}"
            for node in rule["nodes"][:5]
        )
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
