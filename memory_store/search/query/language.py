"""The query language: what a user may type, and nothing a database could mistake for syntax.

    query    := line*
    line     := ("lex:" | "vec:" | "hyde:" | "intent:") text      (at the start of a line)
              | item*
    item     := "-" word | "-" phrase | phrase | prefix | word
    phrase   := '"' text '"'                                      (typographic quotes too)
    prefix   := ("topic:" | "type:" | "in:" | "since:" | "until:") (word | phrase)

Words are OR-ed and ranked. A phrase is a condition and its words rank as well; ``-`` excludes.
A lone quote is an ordinary character. Parsing is pure and linear in the length of the query.

Boundary: queries may be secrets. Nothing here logs, caches or quotes one in an error.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.records import SearchRequest
from memory_store.text.words import query_words
from memory_store.text.words import words as words_of

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_TYPED_LINE = re.compile(r"\s*(lex|vec|hyde|intent):\s*(.*)", re.DOTALL)
_ITEM = re.compile(
    r"""(?P<minus>-(?=[^\s\-]))?
        (?: (?P<key>topic|type|in|since|until):(?: "(?P<quoted>[^"]*)" | (?P<value>[^\s"]\S*) )
          | "(?P<phrase>[^"]*)"
          | (?P<word>\S+) )""",
    re.VERBOSE,
)
_CAMEL_CASE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # getUserById, HTTPResponse
_METAVARIABLE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*|\$\$)")
_METACHARACTERS = frozenset("\\^$.|?*+()[]{}")
_CLOSING = ".?!"


class Phrase(Struct, frozen=True):
    """Words that must (or must not) stand side by side: as typed, and one by one."""

    text: str
    words: tuple[str, ...]


WORDS_OF_A_SENTENCE = 2  # beside what is quoted: a phrase and one word more are a condition
WORDS_OF_A_TEXT = 20  # likewise: what is that long was pasted, and its quotes are its author's


class Variant(Struct, frozen=True):
    """Another wording to search for as well: ``lex`` by keyword, ``vec`` and ``hyde`` by vector."""

    kind: str
    text: str


class ParsedQuery(Struct, frozen=True):
    """A query taken apart.

    ``text`` is what is left to be embedded and reranked: no operators, no excluded words.
    ``words`` are its words as spelled, in order, repeats and stop words included.
    ``required`` and ``excluded`` are hard conditions; the rest are filters as typed, names and
    dates not looked up yet.
    """

    text: str
    words: tuple[str, ...]
    required: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    variants: tuple[Variant, ...] = ()
    intent: str | None = None

    @property
    def has_filters(self) -> bool:
        """Whether anything but words restricts the answer."""
        return bool(self.collections or self.types or self.topics or self.since or self.until)

    @property
    def words_beside_quotes(self) -> int:
        """How many other words the phrases stand among; 0 where there is no phrase."""
        quoted = sum(len(phrase.words) for phrase in self.required)
        return len(self.words) - quoted if quoted else 0

    @property
    def reading(self) -> str:
        """The text a reranker is given: the words asked for, else the first variant."""
        return self.text or next((variant.text for variant in self.variants), "")


PATTERN_MODES = ("literal", "structural")

NO_WORD = (
    "q: the query holds no word to search for. Signs are found as a pattern, with \\ before each: "
    "--mode literal (mode=literal)"
)
LEFT_OUT = "q: the query says only what to leave out: add a word, or a filter such as type:note"


def refuse_nothing(request: SearchRequest) -> None:
    """Raise :class:`BadInputError` where there is nothing to answer."""
    if not request.asks:
        raise BadInputError("q: the query is empty: say what you look for", parameter="q")


def parse(request: SearchRequest) -> ParsedQuery:
    """Take the query apart and add the other filters; prefixes narrow what those say. A pattern is
    no query: no character of it stands for anything here.

    Raises only :class:`BadInputError`: for an empty query, one without any word or filter, or a
    minus before a prefix.
    """
    refuse_nothing(request)
    if resolve_mode(request) in PATTERN_MODES:
        return option_filters(request)
    clean = request.query.translate(_QUOTES)
    variants: list[Variant] = []
    intent: list[str] = []
    plain: list[str] = []
    for line in clean.split("\n"):
        typed = _TYPED_LINE.fullmatch(line)
        if typed is None:
            plain.append(line)
        elif typed[1] == "intent":
            intent.append(typed[2].strip())
        elif typed[2].strip():
            variants.append(Variant(typed[1], typed[2].strip()))
    parsed = _with_options(_items("\n".join(plain)), request)
    if variants or intent:
        parsed = replace(parsed, variants=tuple(variants), intent=" ".join(intent) or None)
    lists = not parsed.text and (parsed.has_filters or request.asks_without_words)
    if not (parsed.words or parsed.variants or lists):
        raise BadInputError(LEFT_OUT if parsed.excluded else NO_WORD, parameter="q")
    return parsed


def resolve_mode(request: SearchRequest) -> str:
    """The mode to search in; ``auto`` looks at the query's shape.

    ``/…/``, or one token with ``_``, ``::``, camelCase or a metacharacter other than a closing
    ``. ? !`` → literal; ``$NAME`` → structural; else hybrid. (prx's published rule, fewer than
    three tokens or any metacharacter → literal, would take nearly every natural question.)
    """
    if request.mode != "auto":
        return request.mode
    stripped = request.query.strip()
    if _METAVARIABLE.search(stripped):
        return "structural"
    return "literal" if is_delimited(stripped) or is_symbol_like(stripped) else "hybrid"


def is_delimited(query: str) -> bool:
    """Whether the query is written as ``/a regular expression/``."""
    return len(query) > 2 and query.startswith("/") and query.endswith("/")


def is_symbol_like(query: str) -> bool:
    """Whether the query is one token that looks like an identifier or a pattern, not a word."""
    token = query.strip()
    if not token or len(token.split()) != 1 or token[0] in '-"“„':
        return False
    if _ITEM.fullmatch(token)["key"]:  # type: ignore[index]  # \S+ matches any single token
        return False
    body = token.rstrip(_CLOSING)
    return (
        "_" in body
        or "::" in body
        or _CAMEL_CASE.search(body) is not None
        or not _METACHARACTERS.isdisjoint(body)
    )


def _items(plain: str) -> ParsedQuery:
    """The items of the untyped lines."""
    shown: list[str] = []
    required: list[Phrase] = []
    excluded: list[Phrase] = []
    prefixes: dict[str, list[str]] = {}
    for item in _ITEM.finditer(plain):
        minus, key, quoted, value, phrase, word = item.groups()
        if key and minus:
            raise BadInputError(f"q: {key}: cannot be excluded with a minus", parameter="q")
        text = word if phrase is None else phrase
        if key:
            prefixes.setdefault(key, []).append((quoted if value is None else value).strip())
        elif minus:
            excluded.append(_phrase(text))
        else:
            shown.append(text)
            if phrase is not None:
                required.append(_phrase(text))
    text = " ".join(" ".join(shown).split())
    return ParsedQuery(
        text=text,
        words=tuple(word.text for word in query_words(text)),
        required=tuple(phrase for phrase in required if phrase.words),
        excluded=tuple(phrase for phrase in excluded if phrase.words),
        collections=tuple(prefixes.get("in", ())),
        types=tuple(prefixes.get("type", ())),
        topics=tuple(prefixes.get("topic", ())),
        since=prefixes.get("since", [None])[-1],
        until=prefixes.get("until", [None])[-1],
    )


def _phrase(text: str) -> Phrase:
    return Phrase(text, tuple(word.text for word in words_of(text)))


def option_filters(request: SearchRequest) -> ParsedQuery:
    """The filters of the request alone, as a query without words."""
    return _with_options(ParsedQuery("", ()), request)


def _with_options(parsed: ParsedQuery, request: SearchRequest) -> ParsedQuery:
    """Filters given as options count where the query itself says nothing of the kind."""
    given = (request.collection, request.type, request.topic, request.since, request.until)
    if not any(given):
        return parsed
    return replace(
        parsed,
        collections=parsed.collections or request.collection,
        types=parsed.types or request.type,
        topics=parsed.topics or request.topic,
        since=parsed.since or request.since,
        until=parsed.until or request.until,
    )
