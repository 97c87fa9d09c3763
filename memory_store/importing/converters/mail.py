"""Messages (EML): text, who wrote to whom and when, and attachments of kinds that are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

from memory_store.importing.converters import html
from memory_store.importing.converters.document import (
    Document,
    LeftOutError,
    UnreadableError,
    moment,
    tidy,
)
from memory_store.importing.converters.kinds import converter, kind_of

DEEPEST = 3  # messages within messages
MOST_DOCUMENTS = 100  # of one message
HEADERS = ("From", "To", "Cc", "Date")
KEPT = {
    "From": "from",
    "To": "to",
    "Cc": "cc",
    "Message-ID": "message_id",
    "In-Reply-To": "reply_to",
}
TEXTS = (".txt", ".md", ".markdown", ".csv")


def convert(data: bytes) -> list[Document]:
    """The message, and after it each attachment that can be read."""
    message = _parsed(data)
    if not any(_header(message, name) for name in ("From", "To", "Subject", "Message-ID")):
        raise UnreadableError("broken, or no message")
    found = list(islice(_documents(message, 0), MOST_DOCUMENTS))
    if not found:
        raise LeftOutError("empty")
    return found


def _documents(message: EmailMessage, depth: int) -> Iterator[Document]:
    subject, text = _header(message, "Subject"), _text(message)
    said = [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    created = _moment(_header(message, "Date"))
    if text or subject:
        yield Document(
            text="\n".join(said) + f"\n\n{text or subject}",
            title=subject,
            created=created,
            metadata={
                key: value for name, key in KEPT.items() if (value := _header(message, name))
            },
        )
    for number, attached in enumerate(_attached(message)):
        name = _name(attached) or f"attachment {number + 1}"
        of = subject or _header(message, "Message-ID")
        about = {"attached_to": of} if of else {}
        for one in _read(attached, name, depth):
            part = f"{name}/{one.part}" if one.part else name
            yield Document(
                one.text, one.title or name, one.created or created, {**one.metadata, **about}, part
            )


def _read(attached: Any, name: str, depth: int) -> Iterator[Document]:
    """The documents in an attachment; none where it cannot be read, as any mail program does."""
    if attached.get_content_type() == "message/rfc822":
        inner = attached.get_payload(0) if attached.is_multipart() else None
        if inner is not None and depth < DEEPEST:
            yield from _documents(inner, depth + 1)
        return
    suffix = os.path.splitext(name)[1].lower()
    kind, content = kind_of(suffix), attached.get_payload(decode=True)
    if not isinstance(content, bytes) or not content:
        return
    if suffix in TEXTS and b"\0" not in content:
        yield Document(content.decode("utf-8", "replace"))
    elif suffix == ".eml":
        if depth < DEEPEST:
            yield from _documents(_parsed(content), depth + 1)
    elif kind is not None:
        try:
            yield from converter(kind.name)(content)
        except (LeftOutError, UnreadableError, ImportError):
            return


def _parsed(data: bytes) -> EmailMessage:
    return BytesParser(policy=policy.default).parsebytes(data)


def _text(message: EmailMessage) -> str:
    """The text that the writer meant, without pictures."""
    try:
        body = message.get_body(("plain", "html"))
        content = body.get_content() if body is not None else ""
    except (KeyError, LookupError, ValueError, AttributeError, AssertionError):
        return ""  # an encoding or a structure that is none
    if body is not None and body.get_content_subtype() == "html":
        return html.markdown(content)
    return tidy(str(content))


def _attached(message: EmailMessage) -> Iterator[Any]:
    try:
        yield from message.iter_attachments()
    except (AttributeError, KeyError, ValueError):  # a multipart message that is none
        return


def _header(message: Any, name: str) -> str:
    """A header in one line; empty where it is missing or so broken that the parser fails."""
    try:
        return " ".join(str(message[name] or "").split())
    except Exception:  # noqa: BLE001 - the standard library's parser fails in many ways on these
        return ""


def _name(attached: Any) -> str:
    try:
        return str(attached.get_filename() or "")[:200].replace("/", " ").strip()
    except Exception:  # noqa: BLE001 - as above
        return ""


def _moment(said: str) -> str | None:
    try:
        return moment(parsedate_to_datetime(said))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
