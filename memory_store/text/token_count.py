"""How many tokens a language model sees in a text: by ``cl100k_base`` where a library has that.

Boundary: counts plain text in memory, and keeps nothing of it. The library brings its vocabulary
with it: nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

FASTER, OTHER = "rs_bpe", "bpe_openai"  # pip install rs-bpe, or bpe-openai (both MIT)
VOCABULARY = "cl100k_base"  # prx, "Budget Enforcement"
TOKEN_CHARACTERS = 4  # prx: "chunk content length divided by 4"
LONGEST_TOKEN = 128  # characters, blanks in a row, of cl100k_base
ESTIMATE = f"length / {TOKEN_CHARACTERS}"


def is_exact() -> bool:
    """Whether a library that counts exactly is there; loads nothing."""
    return any(map(find_spec, (FASTER, OTHER)))


def counted_with() -> str:
    """What :func:`tokens` counts with."""
    return VOCABULARY if is_exact() else ESTIMATE


def tokens(text: str) -> int:
    """The tokens of a text, exactly or about."""
    return exact(text) if is_exact() else estimated(text)


def exact(text: str) -> int:
    """Its tokens in ``cl100k_base``. Raises ImportError without the library."""
    return _counter()(text.encode("utf-8", "replace").decode())


def estimated(text: str) -> int:
    """Length ÷ 4, rounded up."""
    return -(-len(text) // TOKEN_CHARACTERS)


@cache
def _counter() -> Callable[[str], int]:
    if find_spec(FASTER):
        count: Callable[[str], int] = import_module(f"{FASTER}.bpe").openai.cl100k_base().count
        return count
    encoded = import_module(OTHER).get_encoding(VOCABULARY).encode_ordinary
    return lambda text: len(encoded(text))
