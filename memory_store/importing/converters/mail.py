"""Messages (EML): text, who wrote to whom and when, and attachments of kinds that are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
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
MESSAGE, INLINE = "message/rfc822", ("text/plain", "text/html")
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
    subject, (text, attachments) = _header(message, "Subject"), _contents(message)
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
    for number, attached in enumerate(attachments, 1):
        name = _name(attached) or f"attachment {number}"
        of = subject or _header(message, "Message-ID")
        about = {"attached_to": of} if of else {}
        try:
            for one in _read(attached, name, depth):
                part = f"{name}/{one.part}" if one.part else name
                yield Document(
                    *(one.text, one.title or name, one.created or created),
                    *({**one.metadata, **about}, part, one.unread),
                )
        except (LeftOutError, UnreadableError) as error:
            yield Document("", part=name, unread=str(error))
        except ImportError:
            continue  # the extra that would read it is not installed


def _read(attached: Any, name: str, depth: int) -> Iterator[Document]:
    """The documents in an attachment; none in one of a kind that is not read.

    Raises LeftOutError, UnreadableError, ImportError.
    """
    if attached.get_content_type() == MESSAGE:
        inner = attached.get_payload(0) if attached.is_multipart() else None
        if inner is not None and depth < DEEPEST:
            yield from _documents(inner, depth + 1)
        return
    suffix = os.path.splitext(name)[1].lower()
    kind, content = kind_of(suffix), attached.get_payload(decode=True)
    if not isinstance(content, bytes) or not content:
        return
    if suffix in TEXTS and b"\0" not in content:
        yield Document(_decoded(content, attached))
    elif suffix == ".eml":
        if depth < DEEPEST:
            yield from _documents(_parsed(content), depth + 1)
    elif kind is not None:
        yield from converter(kind.name)(content)


def _parsed(data: bytes) -> EmailMessage:
    return BytesParser(policy=policy.default).parsebytes(data)


def _contents(message: EmailMessage) -> tuple[str, list[Any]]:
    """The text that the writer meant, without pictures, and the attachments."""
    text, body = "", None
    for wanted in (("plain", "html"), ("html",)):  # a program may leave the plain one empty
        if not text and (body := _body(message, wanted)) is not None:
            text = _text(body)
    texts, attachments = [text], []
    for part, alternative in _parts(message):
        kind = part.get_content_type()
        if part is body:
            continue
        if kind == MESSAGE or part.get_content_disposition() == "attachment" or _name(part):
            attachments.append(part)
        elif kind in INLINE and not alternative:
            texts.append(_text(part))
    return tidy("\n\n".join(texts)), attachments


def _body(message: EmailMessage, wanted: tuple[str, ...]) -> Any:
    try:
        return message.get_body(wanted)
    except (KeyError, LookupError, ValueError, AttributeError, AssertionError):
        return None  # a structure that is none


def _parts(message: Any, alternative: bool = False) -> Iterator[tuple[Any, bool]]:
    """The parts that hold no others, and whether another one says the same. A message is one."""
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message, alternative
        return
    for part in message.get_payload():
        yield from _parts(part, alternative or message.get_content_subtype() == "alternative")


def _text(part: Any) -> str:
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    if part.get_content_subtype() != "html":
        return tidy(_decoded(content, part))
    return html.markdown(_decoded(content, part) if part.get_content_charset() else content)


def _decoded(content: bytes, part: Any) -> str:
    """A text in the encoding that it declares, or UTF-8, or else as Windows writes it."""
    declared = part.get_content_charset() or "utf-8"
    for encoding in (declared, "utf-8"):
        with suppress(LookupError, ValueError):
            return content.decode(encoding)
    with suppress(LookupError, ValueError):
        if declared not in ("utf-8", "us-ascii"):
            return content.decode(declared, "replace")
    return content.decode("cp1252", "replace")


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
