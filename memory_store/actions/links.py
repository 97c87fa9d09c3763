"""How memories hang together: the links of one, both ways, and what is near it.

Boundary: opens the memory, the texts of those that link to it (for the sentence around the link)
and of what it embeds, and the heads of the others, where the caller's keys do. What they do not
open is not there: it is no target, no backlink, and in no count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.mentions import mentions
from memory_store.actions.reads import open_all, open_heads, open_one, shown
from memory_store.actions.reads import resolve as resolve_id
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import (
    Linked,
    Memory,
    MemoryHead,
    MemoryLinks,
    Related,
    SealedMemory,
    Unfolded,
    Unresolved,
    base_type,
)
from memory_store.session.link_graph import LinkGraph
from memory_store.session.opened_vault import OpenVault
from memory_store.text.identifiers import CODE
from memory_store.text.links import Link, links_of_fields
from memory_store.text.links import links as links_in
from memory_store.titles import shown_title
from memory_store.vault.audit_events import READ

MOST_BACK = 50  # backlinks whose sentences are shown: each opens a memory
MOST_OUT = 200
MOST_RELATED, MOST_SHOWN, MOST_NEAR = 50, 10, 32
MOST_EMBEDDED = 10
BESIDE = 2  # times as many are asked of the search: links bring some of them forward
DIRECT, SHARED = 0.5, 0.2  # how far a link, or a link in common, closes the gap to a score of 1

LINKS_HERE, LINKED_FROM = "links to it", "is linked from it"
IN_COMMON = "links in common"
BY_LEG = ("near in meaning", "shares topics", "shares words")


@action(READ, writes=False, counts=lambda found: (1 + len(found.back) + found.unlinked_opened, 1))
def links(opened: Opened, memory_id: str, *, refs: bool = True, around: bool = True) -> MemoryLinks:
    """What a memory links to, what links to it with the sentence around, what names it without a
    link, and what is not there.

    By id, the beginning of an id, or (``refs``) ref. Without ``around`` the texts of others are not
    opened, and mentions not looked for. Raises NotFoundError.
    """
    memory = open_one(opened.vault, memory_id, refs=refs)
    if isinstance(memory, SealedMemory):
        raise NotFoundError(f"no memory {memory_id!r}")
    graph = opened.vault.link_graph()
    found = _links_of(opened.vault, graph, memory, around=around)
    return _with_mentions(opened, graph, memory, found) if around else found


def _with_mentions(
    opened: Opened, graph: LinkGraph, memory: Memory, found: MemoryLinks
) -> MemoryLinks:
    linked = {other for _, other in graph.incoming.get(memory.id, ())}
    named = mentions(opened, memory, linked)
    return replace(
        found,
        unlinked=named.found,
        unlinked_opened=named.opened,
        unlinked_left=named.left,
    )


@action(READ, writes=False, counts=lambda found: (found.opened, found.opened))
def unfolded(opened: Opened, memory_id: str) -> Unfolded:
    """A memory with its links, and with the notes that it embeds, for reading. By id.

    Raises NotFoundError.
    """
    vault = opened.vault
    memory = open_one(vault, memory_id, refs=False)
    if isinstance(memory, SealedMemory):
        return Unfolded(shown(vault, [memory])[0], MemoryLinks(memory.id), {}, {})
    graph = vault.link_graph()
    links = _with_mentions(opened, graph, memory, _links_of(vault, graph, memory))
    targets = _targets(graph, memory)
    wanted = dict.fromkeys(
        targets[link.kind, link.target]
        for link in links_in(memory.text)
        if link.embed and (link.kind, link.target) in targets
    )
    embedded = {
        one.id: (one, _targets(graph, one))
        for one in _opened(vault, [*wanted][:MOST_EMBEDDED])
        if one.id != memory.id
    }
    return Unfolded(shown(vault, [memory])[0], links, targets, embedded)


def _targets(graph: LinkGraph, memory: Memory) -> dict[tuple[str, str], str]:
    """The id that each link in a memory leads to, by how it is written."""
    found = {(link.kind, link.target): resolve(graph, memory, link) for link in _written(memory)}
    return {link: target for link, target in found.items() if target is not None}


def _links_of(
    vault: OpenVault, graph: LinkGraph, memory: Memory, *, around: bool = True
) -> MemoryLinks:
    targets, missing = _resolved(graph, memory)
    sources: dict[str, str] = {}
    for kind, other in graph.incoming.get(memory.id, ()):
        sources.setdefault(other, kind)
    shown_back = [*sources][:MOST_BACK]
    texts = {one.id: one for one in _opened(vault, shown_back)} if around else {}
    shown = [*[*targets][:MOST_OUT], *(() if around else shown_back)]
    titles = _named(vault, open_heads(vault, shown))
    titles |= {one: _name(memory) for one, memory in texts.items()}
    return MemoryLinks(
        memory.id,
        [Linked(*titles[one], *targets[one]) for one in targets if one in titles],
        [
            Linked(
                *titles[other],
                sources[other],
                "",
                _around(graph, texts[other], memory.id) if other in texts else "",
            )
            for other in shown_back
            if other in titles
        ],
        missing,
        len(sources),
    )


def _resolved(
    graph: LinkGraph, memory: Memory
) -> tuple[dict[str, tuple[str, str]], list[Unresolved]]:
    """Id of each memory that one links to → how, and as it is written; and what is not there."""
    targets: dict[str, tuple[str, str]] = {}
    missing: dict[tuple[str, str], None] = {}
    for link in _written(memory):
        target = resolve(graph, memory, link)
        if target is None:
            missing[link.target, link.kind] = None
        elif target != memory.id:
            targets.setdefault(target, (link.kind, link.target))
    for kind, target in graph.outgoing.get(memory.id, ()):
        targets.setdefault(target, (kind, ""))
    return targets, [Unresolved(*one) for one in missing]


def resolve(graph: LinkGraph, memory: Memory, link: Link) -> str | None:
    """The id of the memory that a link in a memory leads to."""
    return graph.resolve(memory.id, link.target, link.kind, memory.source or "", memory.ref or "")


def _written(memory: Memory) -> Iterator[Link]:
    """The links in a memory's text and fields; source code has none."""
    if base_type(memory.type) == CODE:
        return
    yield from links_in(memory.text)
    yield from links_of_fields(memory.metadata)


def _opened(vault: OpenVault, ids: Sequence[str]) -> list[Memory]:
    return shown(vault, [one for one in open_all(vault, ids) if not isinstance(one, SealedMemory)])


def _named(
    vault: OpenVault, heads: Mapping[str, MemoryHead]
) -> dict[str, tuple[str, str, str, str]]:
    """Id → id, title, type and collection; opens no text but of those without a title."""
    snapshot = vault.snapshot()
    found = {
        one: (one, head.title, snapshot.type(ordinal), head.collection)
        for one, head in heads.items()
        if (ordinal := snapshot.ordinal_of(one)) is not None
    }
    untitled = [one for one, (_, title, *_) in found.items() if not title.strip()]
    return found | {one.id: _name(one) for one in _opened(vault, untitled)}


def _name(memory: Memory) -> tuple[str, str, str, str]:
    return memory.id, shown_title(memory.title, memory.text), memory.type, memory.collection


def _around(graph: LinkGraph, other: Memory, target: str) -> str:
    """The sentence in which another memory links to one."""
    found = (link.around for link in _written(other) if resolve(graph, other, link) == target)
    return next(filter(None, found), "")


@action(READ, writes=False, counts=lambda found: (0, len(found)))
def related(
    opened: Opened, memory_id: str, *, limit: int = MOST_SHOWN, refs: bool = True
) -> list[Related]:
    """The memories nearest to one by meaning, words, topics and links, with the reasons.

    By id, the beginning of an id, or (``refs``) ref. Opens no text but of those without a title.
    Raises NotFoundError, BadInputError.
    """
    from memory_store.actions.searches import context
    from memory_store.search.pipeline import nearest

    if not 1 <= limit <= MOST_RELATED:
        raise BadInputError(f"limit: 1 to {MOST_RELATED} expected", "limit")
    vault = opened.vault
    memory = resolve_id(vault, memory_id, refs=refs)
    most = min(BESIDE * limit, MOST_NEAR)
    scores: dict[str, float] = {}
    reasons: dict[str, list[str]] = defaultdict(list)
    for row in nearest(context(opened), memory, most):
        found = row.candidate
        ranks = (found.vector_rank, found.topic_rank, found.keyword_rank)
        near = sorted((rank, why) for rank, why in zip(ranks, BY_LEG, strict=True) if rank)
        scores[found.id], reasons[found.id] = row.score, [why for _, why in near]
    for other, reason, gain in _by_links(vault.link_graph(), memory):
        scores[other] = 1 - (1 - scores.get(other, 0.0)) * (1 - gain)
        reasons[other].insert(0, reason)
    best = sorted(scores, key=lambda one: (-scores[one], one))[: BESIDE * limit]
    heads = open_heads(vault, best)
    names = _named(vault, heads)
    alike = Counter(title for _, title, *_ in names.values())
    return [
        Related(
            *names[one],
            round(scores[one], 4),
            tuple(dict.fromkeys(reasons[one])),
            heads[one].ref
            if alike[names[one][1]] > 1 or base_type(names[one][2]) == CODE
            else None,
        )
        for one in best
        if one in names
    ][:limit]


def _by_links(graph: LinkGraph, memory: str) -> Iterator[tuple[str, str, float]]:
    """Memories that links bring near: id, the reason, and how far it closes the gap."""
    out, back = _ends(graph.outgoing, memory), _ends(graph.incoming, memory)
    common: dict[str, None] = {}
    for between in (*out, *back):
        common.update(_ends(graph.incoming if between in out else graph.outgoing, between))
    for other in common:
        if other not in (*out, *back, memory):
            yield other, IN_COMMON, SHARED
    for other in out:
        yield other, LINKED_FROM, DIRECT
    for other in back:
        yield other, LINKS_HERE, DIRECT


def _ends(links: Mapping[str, Iterable[tuple[str, str]]], memory: str) -> dict[str, None]:
    return dict.fromkeys(other for _, other in links.get(memory, ()))
