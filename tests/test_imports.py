"""No module needs another that needs it, in either package, however long the way round."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

grimp = pytest.importorskip("grimp", reason="comes with the tools of `make lint`")


def test_no_import_leads_back_to_where_it_began() -> None:
    graph = grimp.build_graph(
        "memory_store", "datasette_hybrid", exclude_type_checking_imports=True
    )
    order = TopologicalSorter(
        {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    )
    try:
        order.prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))
