"""What proofs share with the plugin's tests: a real Datasette over a real vault, a real browser."""

from disks import disk, scene  # noqa: F401  (fixtures)
from output import said  # noqa: F401  (a fixture)
from plugin.conftest import (  # noqa: F401  (fixtures)
    address,
    browser,
    filled,
    model,
    on_server,
    original,
    serve,
    served,
)
from whole_vault import make_whole, state, whole  # noqa: F401  (fixtures)
