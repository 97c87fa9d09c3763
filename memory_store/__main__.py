"""``python -m memory_store``: the same as the ``memory-store`` script."""

from memory_store.cli import main

if __name__ == "__main__":
    main(prog_name="memory-store")
