"""What a server that holds vaults open uses of them, beside records, errors and access.

Boundary: names only. What opens texts or takes keys says so where it is defined.
"""

from __future__ import annotations

from memory_store import plain_text
from memory_store.actions.edits import checked_change, checked_rows
from memory_store.actions.saved_searches import is_token
from memory_store.actions.trail import COLUMNS, Total, Wanted, totals
from memory_store.addresses import Address, is_address
from memory_store.assistants import answer_over_http, require_sdk
from memory_store.assistants.allowance import Allowances, Streams
from memory_store.assistants.assistant import (
    Access,
    Assistant,
    RefusedError,
    access_of,
    least,
    only,
    sole,
)
from memory_store.assistants.sessions import Sessions
from memory_store.code.blame import Change, changes_in
from memory_store.code.languages import language_of_name
from memory_store.configuration import opener, typed_vault
from memory_store.dates import epoch
from memory_store.importing import archive, drafts
from memory_store.importing.drafts import checked_id, checked_type
from memory_store.importing.job import DIFFERING, KEEP, ImportJob, ImportRequest
from memory_store.importing.readers import READERS
from memory_store.importing.source_file import Found
from memory_store.index.map_layout import HEIGHT as MAP_HEIGHT
from memory_store.index.map_layout import WIDTH as MAP_WIDTH
from memory_store.key_lookup import PASSPHRASE_VARIABLE, key_in_environment
from memory_store.late_vectors import BackgroundEmbedding
from memory_store.paths import KEY_FILE_VARIABLE, file_of
from memory_store.plain_text import ATTRIBUTES as ATTRIBUTE_LIST
from memory_store.plain_text import BLOCK_NAME, heading_words
from memory_store.records.code import (
    CodeContext,
    CodeImpact,
    CodeOutline,
    CodeReferences,
    CodeText,
    Dependant,
    SymbolAnswer,
)
from memory_store.records.degraded import Code, as_schema
from memory_store.records.explanation import Account, Stages, Verdict
from memory_store.records.request import NO, YES
from memory_store.records.visibility import ForSearchers, InPart, shown_to_searchers
from memory_store.scopes import EVERYTHING, NOTHING, Scope
from memory_store.search.answer.previews import after_heading
from memory_store.search.degraded import NO_RERANKER, EmbeddingNow
from memory_store.search.explain import words
from memory_store.search.query.language import parse
from memory_store.search.recipes import RECIPES
from memory_store.searchers.pool import DEPTH, Searchers
from memory_store.session.collections import PERSONAL
from memory_store.session.credentials import secret_from_key_text, secrets_to_open
from memory_store.session.unlock import open_vault
from memory_store.sql.functions import HybridFunctions, StoreAndGrants
from memory_store.sqlite import (
    WRITABLE,
    ExtensionUnavailable,
    FileAccess,
    connect,
    load_vec,
    plain_cause,
    sqlite3,
)
from memory_store.store import MemoryStore
from memory_store.text.canonical import canonical_text, normalise_topic, whole_characters
from memory_store.text.identifiers import CODE
from memory_store.text.links import WIKI_LINK, Link, heading_name, markdown_link, section, wiki_link
from memory_store.text.plain_json import read_json, write_json
from memory_store.titles import shown_title
from memory_store.vault.audit_events import ACTIONS, SERVER, AuditEvent
from memory_store.vault.members import OWNER_ROLE, ROLES
from memory_store.vault.settings import read_vault_id
from memory_store.vault.slots import Secret
from memory_store.vault.sources import UPLOADED
from memory_store.vault.storage import Storage
from memory_store.vault.storage.clear_copy import ClearCopy
from memory_store.vault.storage.damage import vault_faults
from memory_store.vault.storage.file_access import (
    IN_MEMORY,
    WITHOUT_SHARING,
    file_access,
    says_vault,
)
from memory_store.vault.storage.schema import (
    LATER_TABLES,
    MEMORY_TABLES,
    SETTINGS_TABLE,
    VAULT_TABLES,
    is_vault,
)
