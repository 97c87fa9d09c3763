"""How well an assistant finds through its tools alone, and how much it reads for an answer.

    python -m benchmarks.through_tools EVALS/locomo [CONVERSATIONS]

Each turn of a LoCoMo conversation is added by ``memory_add``, each question asked by
``memory_search``. Printed for each conversation: recall@10 by the tools and by the library on the
same vault, tokens of the tool's usual answer, and tokens of the whole conversation.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.development_sets import Part, locomo
from memory_store.assistants.arguments import MOST_AT_ONCE, MOST_BUDGET
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore
from memory_store.text.token_count import counted_with, tokens

AT = 10


def added(assistant: Assistant, part: Part) -> dict[str, str]:
    """Id of each memory by its reference, added in order, as many at once as the tool takes."""
    ids: dict[str, str] = {}
    drafts = list(part.records)
    for start in range(0, len(drafts), MOST_AT_ONCE):
        some = drafts[start : start + MOST_AT_ONCE]
        new = [{"text": draft.text} for draft in some]
        answers = call(assistant, "memory_add", {"memories": new})["memories"]
        ids |= {str(draft.ref): one["id"] for draft, one in zip(some, answers, strict=True)}
    return ids


def recall(found: Iterable[str], wanted: Sequence[str]) -> float:
    return len(set(found) & set(wanted)) / len(wanted)


def measured(part: Part) -> dict[str, float]:
    """The figures of one conversation."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "vault").mkdir()
        store, _ = MemoryStore.create(place / "vault" / "notes.db", key_file=place / "keys" / "k")
        with store:
            assistant = Assistant(store.limited_to(EVERYTHING), "write", "benchmark")
            ids = added(assistant, part)
            tools, library, read = [], [], []
            for number, question in part.queries.items():
                wanted = [ids[one] for one in part.judgements[number]]
                asked = {"query": question, "limit": AT, "budget": MOST_BUDGET}
                rows = call(assistant, "memory_search", {**asked, "format": "json"})["results"]
                tools.append(recall((row["id"] for row in rows), wanted))
                rows = store.search(question, limit=AT, expand=False).rows
                library.append(recall((row.id for row in rows), wanted))
                usual = call(assistant, "memory_search", {"query": question})
                read.append(tokens(msgspec.json.encode(usual).decode()))
    return {
        "memories": len(ids),
        "questions": len(tools),
        "recall@10 by tools": statistics.mean(tools),
        "recall@10 by library": statistics.mean(library),
        "tokens read": statistics.median(read),
        "tokens in all": sum(tokens(draft.text) for draft in part.records),
    }


def main() -> None:
    folder, most = Path(sys.argv[1]), int((sys.argv[2:] or ["10"])[0])
    for number, part in enumerate(locomo(folder)):
        if number < most:
            figures = measured(part)
            shown = " · ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"{number} ({counted_with()}): {shown}", flush=True)


if __name__ == "__main__":
    main()
