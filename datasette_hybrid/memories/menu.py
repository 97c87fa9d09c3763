"""What can be done with one memory, as links to the pages that do it.

Boundary: a link is shown to those alone whom the page behind it will serve, which checks again.
"""

from __future__ import annotations

from typing import Any

from memory_store.records import DONE_SUFFIX

from ..permissions.asker import asker
from ..requests.frame import hybrid_path
from ..vaults.vault import Vault

Link = dict[str, str]


def memory_actions(datasette: Any, vault: Vault, row: Any) -> list[Link]:
    """The pages that the asker may open of the memory in a row of the table ``memories``."""
    grants, collection = asker.get().on(vault.database), row["collection"]
    search, read, write = (
        collection in scope for scope in (grants.search, grants.decrypt, grants.write)
    )
    path = hybrid_path(datasette, vault.database)
    own = f"{path}/memories/{row['id']}"
    done = "Mark as open" if str(row["type"] or "").endswith(DONE_SUFFIX) else "Mark as done"
    actions = (
        (read, own, "Open memory", "Read the whole of it."),
        (read and write, f"{own}/edit", "Edit memory", "Change it; it is sealed as it is saved."),
        (read and write, f"{own}#done", done, "By one button on its page."),
        (write, f"{own}/delete", "Delete memory", "For good, after a question."),
        (search, f"{path}?like={row['id']}", "More like this", "Memories that resemble it."),
    )
    return [
        {"href": href, "label": label, "description": description}
        for allowed, href, label, description in actions
        if allowed
    ]
