"""What the list of an MCP server's tools costs a conversation before its first question.

    pip install rs-bpe                            # counts tokens of cl100k_base
    python -m benchmarks.tool_lists               # ours
    python -m benchmarks.tool_lists qmd mcp       # another's, by the command that starts it

Prints Markdown: tools, bytes of the list as JSON, tokens.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.text.token_count import exact


async def listed(command: str, *arguments: str) -> tuple[int, str]:
    """How many tools a server offers, and their list as JSON."""
    server = StdioServerParameters(command=command, args=[*arguments], env=dict(os.environ))
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        said = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in tools]
        return len(said), json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def shown(name: str, *command: str) -> None:
    """One line of the table."""
    tools, said = anyio.run(listed, *command)
    print(f"| {name} | {tools} | {len(said.encode()):,} | {exact(said):,} |", flush=True)


def main() -> None:
    """Measure, and print a table."""
    print("| server | tools | bytes | tokens |\n|---|--:|--:|--:|")
    if command := sys.argv[1:]:
        shown(" ".join(command), *command)
        return
    with tempfile.TemporaryDirectory() as folder:
        path, key_file = Path(folder, "vault", "notes.db"), Path(folder, "keys", "bench.key")
        path.parent.mkdir()
        ours = (sys.executable, "-m", "memory_store", "mcp", str(path), "--key-file", str(key_file))
        with MemoryStore.create(path, key_file=key_file)[0] as store:
            shown("read-only", *ours)
            shown("--write", *ours, "--write")
            code = MemoryDraft("def f(): ...", type="code", metadata={"language": "python"})
            store.add_many([code], embed=False)
            shown("--write, with source code", *ours, "--write")


if __name__ == "__main__":
    main()
