"""One spelling for every text: what is stored, hashed, searched and exported.

Boundary: plain text goes in and plain text comes out. Nothing is kept, cached or logged here.

Two files that differ only in newlines, byte-order mark, trailing blanks or the way an accent is
encoded are the same memory; a topic is the same topic however it was typed.
"""

from __future__ import annotations

import re
import unicodedata

_LONE_NEWLINE = re.compile("\r\n?")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Soft hyphen, zero-width space and joiners, directional marks, word joiner, variation selectors,
# byte-order mark: they change how text is drawn or broken, never which word or topic it is.
_INVISIBLE = re.compile("[\x00-\x08\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_TOPIC_GAP = re.compile(r"[\s_-]+")


def canonical_text(text: str) -> str:
    """The text as the store keeps it; idempotent.

    Unicode NFC, ``\\n`` newlines, no byte-order mark, no NUL, lone surrogates replaced by U+FFFD,
    blanks trimmed at the end of each line, no newlines at the end of the text. Time is linear
    in the length of the text, whatever it holds.
    """
    text = whole_characters(text).replace("\x00", "").lstrip("\ufeff")
    text = unicodedata.normalize("NFC", _LONE_NEWLINE.sub("\n", text))
    if " \n" in text or "\t\n" in text or text.endswith((" ", "\t")):
        # By line: a pattern such as [ \t]+$ takes quadratic time on a long run of blanks.
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return text.rstrip("\n")


def whole_characters(text: str) -> str:
    """The text with halves of surrogate pairs joined, and lone ones replaced by U+FFFD."""
    if not text.isascii() and _SURROGATE.search(text):
        # UTF-16 joins the pairs that a careless JSON reader left apart.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def folded(text: str) -> str:
    """Case and compatibility forms removed (Unicode ``toNFKC_Casefold``), accents kept.

    ``ß`` becomes ``ss``, ``ﬁ`` becomes ``fi``, full-width letters become plain ones; invisible
    characters such as the soft hyphen are dropped. Idempotent.
    """
    if text.isascii():
        return text.lower()
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", whole_characters(text)))
    # Folding can leave a sequence that composes, and composing one that folds: the standard asks
    # for both steps twice, from the decomposed form.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return text


def normalise_topic(topic: str) -> str:
    """A topic as it is hashed: folded, without leading ``#``, with ``-`` between words.

    ``"#Home_Office "`` and ``"home office"`` are both ``home-office``; a path such as
    ``work/garden`` and a closing ``#`` (``C#``) are kept. ``""`` when nothing is left.
    """
    return _TOPIC_GAP.sub("-", folded(topic)).lstrip("#-").rstrip("-")
