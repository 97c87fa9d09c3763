"""Importing by upload: the form, the start of an import, its progress, its end.

Boundary: for those who may write. What is uploaded stays in memory (see ``files.py``) and is
handed to the importer; no page shows any of it again, apart from the names of files, and for those
who may read, titles of the memories that were made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from datasette import Forbidden, NotFound, Response

from memory_store.access import Grants
from memory_store.errors import BadInputError, ConflictError, NotFoundError
from memory_store.host import KEEP, PERSONAL, EmbeddingNow, ImportRequest, shown_title
from memory_store.records import TYPES

from ..permissions.asker import asker
from ..requests import questions
from ..requests.admission import work
from ..requests.answers import answer
from ..requests.cross_site import comes_from_elsewhere, is_forged
from ..requests.frame import hybrid_path, page, render, sentence
from ..search.api import absolute_url, endpoint
from ..search.forms import last, values, whole_number
from ..vaults.vault import Vault
from .files import FILES_LIMIT, UPLOAD_LIMIT, Upload, read_upload, sources, taken
from .jobs import Job, jobs_of

YES = frozenset({"1", "true", "yes", "on"})
UPLOAD_SECONDS = 900  # how long a body may take: its actor can start no other import meanwhile
FIELDS = (
    *("collection", "new_collection", "type", "topics"),
    *("differing", "keep_originals", "dry_run"),
)
AT_ONCE = 100  # memories on one page of what was imported; to open their heads takes 10 ms
NO_STORE = {"Cache-Control": "no-store"}


@page("GET", "HEAD", "POST")
async def import_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/import``: the form, and where it is sent to."""
    vault, _ = await questions.vault_now(datasette, request, "write")
    path = hybrid_path(datasette, vault.database)
    given: Mapping[str, Any] = questions.arguments(request)
    status, refusal = 200, vault.read_only
    if request.method == "POST":
        try:
            with jobs_of(datasette).receiving(vault):
                upload = await _received(request)
                given = upload.fields
                job = await _begin(datasette, request, upload)
        except (BadInputError, ConflictError, Forbidden) as error:
            status, refusal = questions.status_of(error), sentence(str(error))
        else:
            address = f"{path}/import/{job.name}"
            return Response.redirect(address, status=303, headers=NO_STORE)
    vault, grants = await questions.vault_for(datasette, request, "write")
    context = {
        "given": {name: last(given, name) for name in FIELDS},
        "accept": taken().replace(" ", ""),
        "may_create": _may_name_new(grants),
        "types": TYPES,
        "collections": await work.run(lambda: _names(vault, grants)),
        "taken": taken(),
        "megabytes": UPLOAD_LIMIT // 1024**2,
        "most": FILES_LIMIT,
        "refusal": refusal,
    }
    return await render(datasette, request, "hybrid_import.html", context, status, vault=vault)


@endpoint("POST", takes=("name", *FIELDS))
async def import_json(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/import.json``: a multipart form, or one file and its ``name``."""
    vault, _ = await questions.vault_now(datasette, request, "write")
    with jobs_of(datasette).receiving(vault):
        upload = await _received(request)
        questions.refuse_unknown(upload.fields, "name", *FIELDS, "csrftoken")
        job = await _begin(datasette, request, upload)
    path = f"{hybrid_path(datasette, vault.database)}/import/{job.name}.json"
    url = absolute_url(datasette, request, path)
    return answer({"ok": True, **job.as_dict(), "job_url": url}, status=202)


@page("GET", "HEAD", "POST")
async def job_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/import/{job}``: how far it is; posting stops it."""
    vault, job = await _job(datasette, request)
    path = hybrid_path(datasette, vault.database)
    address = f"{path}/import/{job.name}"
    if request.method == "POST":
        job.stop()
        return Response.redirect(address, status=303, headers=NO_STORE)
    context = {
        "address": address,
        "job": job.as_dict(await _embedding(vault)),
        "later": vault.upkeep.embeds_later,
        "running": job.running,
        "listed": await _listed(request, vault, job),
        # the search that lists what was imported, as narrow as the request allows
        "found_by": [
            ("collection", job.request.collection or PERSONAL),
            *(("topic", topic) for topic in job.request.topics),
        ],
        "private_queries": vault.settings.private_queries,
    }
    return await render(datasette, request, "hybrid_import_job.html", context, vault=vault)


@endpoint("GET", "HEAD", "DELETE")
async def job_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/import/{job}.json``: how far it is; ``DELETE`` stops it."""
    vault, job = await _job(datasette, request)
    if request.method == "DELETE":
        job.stop()
    return answer({"ok": True, **job.as_dict(await _embedding(vault))})


async def _embedding(vault: Vault) -> EmbeddingNow | None:
    """What is embedded in the background, of the collections that the asker may search."""
    scope = asker.get().on(vault.database).search
    return await work.run(lambda: vault.upkeep.embedding_now(scope)) if scope else None


async def _received(request: Any) -> Upload:
    """What was uploaded, by this site. Raises ``Forbidden`` for what another site may have sent."""
    questions.leave_body(request)
    if comes_from_elsewhere(request):
        raise Forbidden("this upload was sent by another site")
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            upload = await read_upload(request)
    except TimeoutError:
        raise BadInputError("the upload took too long", "file") from None
    token = last(upload.fields, "csrftoken") or request.headers.get("x-csrftoken", "")
    if is_forged(request, token):
        raise Forbidden("this form is out of date: open the page again and send it once more")
    return upload


async def _begin(datasette: Any, request: Any, upload: Upload) -> Job:
    """Start the import. Raises BadInputError, ConflictError, ReadOnlyError."""
    vault, grants = await questions.vault_for(datasette, request, "write")
    vault.access.refuse_writing(vault.path)
    if not upload.files:
        raise BadInputError("choose at least one file", "file")
    asked = _import_request(upload.fields)
    await work.run(lambda: _check_collection(vault, grants, upload.fields))
    found = await asyncio.to_thread(sources, upload.files)
    return jobs_of(datasette).begin(vault, grants, asked, found)


async def _listed(request: Any, vault: Vault, job: Job) -> dict[str, Any] | None:
    """What was written, a page of it, for a caller who may read it; ``None`` for others.

    Memories with their titles, from the ``first`` on, which is counted from 1. ``missing`` of them
    are gone, or not the reader's. ``known`` is how many ids there are in all pages; ``before`` and
    ``behind`` are the first numbers of the pages next to this one.
    """
    scope, ids = asker.get().on(vault.database).decrypt, job.written_ids
    if job.running or vault.locked or not scope or not ids:
        return None
    named = whole_number(last(questions.arguments(request), "from")) or 1
    first = min(named, len(ids))
    page, behind = ids[first - 1 : first - 1 + AT_ONCE], first + AT_ONCE

    def titles() -> list[tuple[str, str]]:
        store = vault.use(scope)
        heads = store.heads(page)
        untitled = [head.content for head in heads.values() if not head.title.strip()]
        texts = store.texts(untitled) if untitled else {}
        found = [
            (heads[one], texts.get(heads[one].content, ("", ""))[1]) for one in page if one in heads
        ]
        return [(head.id, shown_title(head.title, text) or "Untitled") for head, text in found]

    memories = await work.run(titles)
    return {
        "first": first,
        "memories": memories,
        "missing": len(page) - len(memories),
        "known": len(ids),
        "before": max(1, first - AT_ONCE) if first > 1 else None,
        "behind": behind if behind <= len(ids) else None,
    }


def _import_request(given: Mapping[str, Any]) -> ImportRequest:
    topics = [topic for text in values(given, "topics") for topic in text.split(",")]
    return ImportRequest(
        collection=(last(given, "new_collection") or last(given, "collection")).strip() or None,
        type=last(given, "type") or None,
        topics=topics,
        dry_run=last(given, "dry_run").lower() in YES,
        differing=last(given, "differing") or KEEP,
        keep_originals=last(given, "keep_originals").lower() in YES,
    )


def _check_collection(vault: Vault, grants: Grants, given: Mapping[str, Any]) -> None:
    """Raise BadInputError for a collection that the asker can neither write to nor make.

    A name with a slip in it makes none: a new one would be open to every actor.
    """
    collection, new = (last(given, name).strip() for name in ("collection", "new_collection"))
    if new and not grants.create:
        raise BadInputError("new_collection: you may not make collections here", "new_collection")
    if new and not _may_name_new(grants):
        raise BadInputError(
            "new_collection: make it on the page of collections first, and name it by its id; "
            "whether there is one of that name is for those who may read",
            "new_collection",
        )
    if collection and not new:
        try:
            vault.use(grants.write).collections.find(collection)
        except NotFoundError:
            problem = "collection: no such collection that you may write to"
            raise BadInputError(problem, "collection") from None


def _may_name_new(grants: Grants) -> bool:
    return grants.create and grants.decrypt.covers(grants.write)


def _names(vault: Vault, grants: Grants) -> Sequence[str]:
    """Collections to offer: those that the asker may write to and read. Work for a thread."""
    both = grants.write & grants.decrypt
    return [one.name for one in vault.use(both).collections.list()] if both else []


async def _job(datasette: Any, request: Any) -> tuple[Vault, Job]:
    """The job of the address. While the vault is locked, only the actor who began it sees its
    result: it names files and collections."""
    vault = await questions.visible_vault(datasette, request)
    job = jobs_of(datasette).find(vault, request.url_vars["job"])
    if job is None or not (vault.locked and job.is_of(asker.get())):
        vault, _ = await questions.vault_for(datasette, request, "write")
    if job is None:
        raise NotFound(
            "no such import: it is long over, or the server was started again. What it wrote is "
            "kept; to go on, import the same files once more"
        )
    return vault, job
