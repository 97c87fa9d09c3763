"""Who may ask what of a vault, and what of an answer they see: decided once for a request."""

from memory_store.access.answers import (
    import_lines_shown,
    model_error_shown,
    row_data,
    warning_shown,
    with_text,
    without_text,
)
from memory_store.access.grants import (
    ALL_GRANTS,
    KEY_HOLDER,
    NO_GRANTS,
    Grants,
    NotPermittedError,
    without_writing,
)
from memory_store.access.questions import STRICT, UNREAD_MODES, search
from memory_store.access.words import exists, words
