"""What a search is asked: one record, made once where a request comes in, then handed on as it is.

Every surface takes its options from here: their names, kinds, choices, limits, defaults and words.
Command line, JSON, query strings, SQL, Python, the description of the API and the documentation
follow a field that is added or changed.

Boundary: a query may be a secret, so no error quotes one.
"""

# Annotations are not postponed here: the options are read from them when this module is loaded.

import re
import types
from collections.abc import Mapping, Set
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from memory_store.errors import BadInputError, together
from memory_store.records.memories import BY, TYPES
from memory_store.text.canonical import canonical_text, whole_characters

Mode = Literal["hybrid", "keyword", "vector", "literal", "structural", "auto"]
Status = Literal["open", "done", "all"]
MODES: tuple[str, ...] = get_args(Mode)
STATUSES: tuple[str, ...] = get_args(Status)

LIMIT_STANDARD = 32  # Gnosis, "Two Search Modes": up to 32 results
LIMIT_DEEP = 100  # Gnosis, "Two Search Modes": up to 100 results
DEFAULT_LIMIT = 10
MAX_QUERY_CHARACTERS = 8_192  # a longer query is an error: it is a document, not a question

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off", ""})

Texts = tuple[str, ...]
AtLeastOne = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]


def _said(description: str, value: str | None = None, off: str | None = None) -> Meta:
    """An option in one line; in a command's help also what stands for its value, and what
    ``--no-…`` does."""
    return Meta(description=description, extra={"value": value, "off": off})


class SearchRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a search can be asked: the query, and options named as on the command line.

    Times are ISO 8601 or spans such as ``7d`` and ``3w``; ``meta`` holds ``(key, value)`` pairs;
    ``continue_`` is the ``next`` of an earlier response. The language model that ``expander`` names
    is sent the words of the query.
    """

    query: Annotated[
        str,
        Meta(
            max_length=MAX_QUERY_CHARACTERS,
            description='Plain words; "a phrase", -word, topic:x, type:x, since:2024-05 work',
        ),
    ] = field(default="", name="q")
    mode: Annotated[
        Mode, _said("How to search. literal: text or /regex/, structural: code with $HOLES")
    ] = "hybrid"
    language: Annotated[
        str | None, _said("Language of a structural pattern (default: each file's)", "NAME")
    ] = None
    all_: Annotated[
        bool, _said("Try a pattern on all that may match: open as many as it takes")
    ] = field(default=False, name="all")
    deep: Annotated[bool, _said("Look further, slower; needs two words or more")] = False
    limit: Annotated[
        int,
        Meta(ge=1, le=LIMIT_DEEP),
        _said(f"How many results, at most {LIMIT_STANDARD} (deep: {LIMIT_DEEP})"),
    ] = DEFAULT_LIMIT
    collection: Annotated[Texts, _said("Only this collection", "NAME")] = ()
    type: Annotated[Texts, _said(f"Only this type: {', '.join(TYPES)}", "NAME")] = ()
    topic: Annotated[Texts, _said("Only with this topic or one below it", "NAME")] = ()
    status: Annotated[Status, _said("Open or completed memories")] = "all"
    meta: Annotated[
        tuple[tuple[str, str], ...], _said("Metadata that must match", "KEY=VALUE")
    ] = ()
    since: Annotated[str | None, _said("Created at or after: 2024-05-01, 7d, 3w", "WHEN")] = None
    until: Annotated[str | None, _said("Created at or before", "WHEN")] = None
    as_of: Annotated[
        str | None,
        _said("As it was then: known or valid, and not yet replaced", "WHEN"),
    ] = None
    superseded: Annotated[bool, _said("Also what was replaced, or is no longer valid")] = False
    by: Annotated[str | None, _said("Only what this assistant wrote", "NAME")] = None
    min_score: Annotated[Share | None, _said("Leave out results scored below", "0-1")] = None
    narrow: Annotated[
        Texts,
        _said(
            "Of what was found show only these: type:task, topic:garden, created:2025",
            "FACET:VALUE",
        ),
    ] = ()
    recipe: Annotated[str, _said("Ranking recipe")] = "default"
    reranker: Annotated[
        str | None, _said("Reranking model, a folder that holds one, or maxsim", "NAME")
    ] = None
    rerank: Annotated[
        bool, _said("Rerank where the recipe does", off="Keep the order of the fusion")
    ] = True
    expander: Annotated[
        str | None,
        _said(
            "Model that queries are sent to for other wordings (default: MEMORY_STORE_EXPANDER)",
            "MODEL",
        ),
    ] = None
    expand: Annotated[
        bool, _said("Have the query worded in other ways", off="Search for the words as they are")
    ] = True
    sealed: Annotated[bool, _said("Open exactly the memories that are returned")] = False
    like: Annotated[
        str | None,
        _said("Memories like this one: id, its beginning, or ref", "ID"),
    ] = None
    budget: Annotated[
        AtLeastOne | None,
        _said(
            "Ceiling for titles and previews: what does not fit comes on the next page", "TOKENS"
        ),
    ] = None
    budget_ms: Annotated[
        AtLeastOne | None, _said("Time limit: the reranker reads as many as fit", "MS")
    ] = None
    continue_: Annotated[
        str | None,
        _said(
            "What the answer before gave to go on",
            "TOKEN",
        ),
    ] = field(default=None, name="continue")
    explain: Annotated[
        bool, _said("Show what each stage did, and why each result is where it is")
    ] = False
    why: Annotated[
        str | None,
        _said("Say why this memory (id, its beginning, or ref) was or was not found", "ID"),
    ] = None

    @property
    def asks_without_words(self) -> bool:
        """Whether it needs no query: it is a list by filters, or for what is like a memory."""
        if self.like:
            return True
        named = (self.collection, self.type, self.topic, self.conditions)
        filters = (*named, self.since, self.until, self.as_of)
        wanted = any(filters) or bool(self.narrow) or self.status != "all"
        return wanted and self.mode not in ("literal", "structural")

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """What the metadata of a memory must say, which only its opened head can show."""
        return (*self.meta, (BY, self.by)) if self.by else self.meta

    @property
    def asks(self) -> bool:
        """Whether there is anything to answer: words, filters, or a memory to find others like."""
        return bool(self.query.strip()) or self.asks_without_words


class Option(Struct, frozen=True):
    """A field of the request as surfaces offer it.

    ``name`` is its spelling everywhere but in Python, where it is ``field``; ``kind`` what one
    value is; ``several`` whether many may be given; ``value`` what stands for one in a help text,
    ``off`` what ``--no-…`` does.
    """

    name: str
    field: str
    kind: type
    description: str
    default: Any
    several: bool = False
    pairs: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    value: str | None = None
    off: str | None = None

    @property
    def expected(self) -> str:
        """What a value must be, for a refusal."""
        if self.pairs:
            return "expected KEY=VALUE"
        if self.several:
            return "text or a list of texts expected"
        if self.name == "limit":
            return _whole(1, f" and at most {LIMIT_STANDARD} (deep: {LIMIT_DEEP})")
        if self.kind is int:
            return _whole(self.least)
        if self.kind is float:
            return f"must be a number between {self.least:g} and {self.most:g}"
        return "1 or 0 expected" if self.kind is bool else "text expected"

    def plain(self, value: Any, *, loose: bool) -> Any:
        """A value as the record takes it; ``None`` where nothing was said.

        ``loose``: texts may stand for numbers, and of many values for one the last one counts, as
        in forms with a fallback.
        """
        if self.pairs:
            return _pairs(self.name, value)
        if self.several:
            given = [value] if isinstance(value, str) else value
            if not isinstance(given, list | tuple | Set | None):
                return value
            return tuple(one for one in given or () if one != "") or None
        if loose and isinstance(value, list | tuple):
            value = value[-1] if value else None
        if value == "":
            return None
        if isinstance(value, str):
            value = whole_characters(value)  # msgspec cannot quote half a character in a refusal
        if loose and isinstance(value, str) and self.kind is not str:
            return _read(self.kind, value.strip())
        if self.kind is bool and type(value) is int and value in (0, 1):
            return bool(value)
        return value


def _whole(least: float | None, most: str = "") -> str:
    return f"must be a whole number of at least {least:g}{most}"


def _read(kind: type, text: str) -> Any:
    """The number, or the yes or no, that a text says; the text itself where it says none."""
    if kind is bool and text.lower() in YES | NO:
        return text.lower() in YES
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text


def _pairs(name: str, value: Any) -> tuple[tuple[str, str], ...] | None:
    """``KEY=VALUE`` texts, pairs or a mapping as pairs."""
    given = list(value.items()) if isinstance(value, Mapping) else value or ()
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list | tuple):
        raise BadInputError(f"{name}: expected KEY=VALUE", name)
    pairs = []
    for one in given:
        pair = one.split("=", 1) if isinstance(one, str) else one
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not pair[0]:
            if one == "":
                continue
            raise BadInputError(f"{name}: {one!r}: expected KEY=VALUE", name)
        pairs.append((str(pair[0]), str(pair[1])))
    return tuple(pairs) or None


def several(given: Any) -> Texts:
    """What was given as a tuple: nothing, one text, or many."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def _option(name: str, attribute: str, hint: Any, default: Any) -> Option:
    found: dict[str, Any] = {"several": False, "pairs": False}
    while True:
        origin, inside = get_origin(hint), get_args(hint)
        if origin is Annotated:
            for meta in inside[1:]:
                said = {"description": meta.description, "least": meta.ge, "most": meta.le}
                found |= {key: value for key, value in said.items() if value is not None}
                found |= meta.extra or {}
            hint = inside[0]
        elif origin in (Union, types.UnionType):
            hint = next(one for one in inside if one is not types.NoneType)
        elif origin is tuple:
            found |= {"several": True, "pairs": inside[0] is not str}
            hint = str
        elif origin is Literal:
            found["choices"] = inside
            hint = str
        else:
            return Option(name, attribute, hint, default=default, **found)


def _options() -> dict[str, Option]:
    hints = get_type_hints(SearchRequest, include_extras=True)
    return {
        one.encode_name: _option(one.encode_name, one.name, hints[one.name], one.default)
        for one in msgspec.structs.fields(SearchRequest)
    }


OPTIONS: Mapping[str, Option] = _options()
"""The fields of a request by the name that surfaces use, in the order of the record."""

OPTION_NAMES = tuple(name for name in OPTIONS if name != "q")
_NAME_OF = {option.field: name for name, option in OPTIONS.items()}
_CULPRIT = re.compile(r"`\$\.(\w+)")


def search_request(query: Any = "", **options: Any) -> SearchRequest:
    """The request that Python's keywords make; one that is made already is returned as it is.

    A single text will do where several may stand. ``no_rerank`` and ``no_expand`` are taken too.
    Raises :class:`BadInputError` naming the option.
    """
    if isinstance(query, SearchRequest) and not options:
        return query
    for name in ("rerank", "expand"):
        if f"no_{name}" in options:
            options[name] = not options.pop(f"no_{name}")
    given = {_NAME_OF.get(name, name): value for name, value in options.items()}
    return read_request({"q": query, **given}, loose=False)


def read_request(values: Mapping[str, Any], *, loose: bool = True) -> SearchRequest:
    """The request that names and values make: a JSON object's, or a query string's lists of texts.

    ``None``, empty text and empty lists mean "not said". Raises :class:`BadInputError` naming all
    options that are unknown, of the wrong kind or out of bounds.
    """
    given = {}
    errors: list[BadInputError] = []
    for name, value in values.items():
        option = OPTIONS.get(name)
        if option is None:
            errors.append(_unknown(name))
            continue
        plain = value if name == "q" else option.plain(value, loose=loose)
        if plain is not None or name == "q":
            given[name] = plain
    query = given.get("q", "")
    if isinstance(query, str) and len(query) <= MAX_QUERY_CHARACTERS:
        given["q"] = canonical_text(query)
    while True:
        try:
            request = msgspec.convert(given, SearchRequest)
            break
        except msgspec.ValidationError as error:
            culprit = _CULPRIT.search(str(error))
            name = culprit[1] if culprit else "q"
            errors.append(_refusal(name, given))
            del given[name]  # and what else is wrong?
    if errors:
        raise together(errors)
    if request.limit > LIMIT_STANDARD and not request.deep:
        raise _refusal("limit", given)
    if request.sealed and request.conditions:
        name = "meta" if request.meta else "by"
        raise BadInputError(
            f"{name}: metadata is sealed, so it cannot be a filter in a sealed search", name
        )
    return request


def _refusal(name: str, given: Mapping[str, Any]) -> BadInputError:
    option, value = OPTIONS[name], given.get(name)
    if name == "q" and isinstance(value, str):
        message = f"the query has {len(value):,} characters; at most {MAX_QUERY_CHARACTERS:,} are "
        return BadInputError(f"q: {message}searched", "q")
    if option.choices and isinstance(value, str):
        return BadInputError(f"{name}: {value!r} is not one of {', '.join(option.choices)}", name)
    return BadInputError(f"{name}: {option.expected}", name)


def _unknown(name: str) -> BadInputError:
    from difflib import get_close_matches

    near = get_close_matches(name, OPTION_NAMES, 1)
    known = f"did you mean {near[0]}?" if near else f"there are {', '.join(OPTION_NAMES)}"
    return BadInputError(f"{name}: no such search option; {known}", name)
