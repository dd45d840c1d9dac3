"""Text of people and of cases as safe markup: chapters, inline code, control characters made visible."""

from __future__ import annotations

import re
import textwrap

from markupsafe import Markup, escape

_MARKED = re.compile(r"`([^`\n]+)`|(?<![\w*])\*(\w[^*\n]*)\*(?![\w*])")
_LINK = re.compile(r"https?://[^\s<>\"'`)\]]+")
_FIELD = re.compile(r"^(Mechanism|Source|Requires): ", re.MULTILINE)


def visible(text: object) -> str:
    """The text with every control character but tab and line break shown as a picture of it, so that nothing acts unseen."""
    return "".join(_picture(character) for character in str(text))


def _picture(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or (code >= 32 and not 0x7F <= code < 0xA0 and code not in _TURNING):
        return character
    return chr(0x2400 + code) if code < 32 else "�"


# Characters that reverse or hide what follows: a case's output may not rearrange the page around it.
_TURNING = frozenset({*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF})


def inline(text: str) -> Markup:
    """One run of text: `code` in backticks becomes code, a word in asterisks is stressed, everything else is escaped."""
    parts, end = [], 0
    for match in _MARKED.finditer(text):
        marked = Markup("<code>{}</code>").format(visible(match[1])) if match[1] else Markup("<em>{}</em>").format(visible(match[2]))
        parts += [escape(visible(text[end : match.start()])), marked]
        end = match.end()
    return Markup("").join([*parts, escape(visible(text[end:]))])


def chapter(docstring: str) -> Markup:
    """A group's docstring as paragraphs, lists and indented code, without its fields (`Mechanism:`, `Source:`)."""
    blocks = [block for block in re.split(r"\n\s*\n", textwrap.dedent(docstring).strip()) if block.strip()]
    return Markup("\n").join(_block(block) for block in blocks if not _FIELD.match(block.strip()))


def _block(block: str) -> Markup:
    lines = block.splitlines()
    if all(line.startswith("    ") for line in lines):
        return Markup("<pre>{}</pre>").format(visible(textwrap.dedent(block)))
    if lines[0].lstrip().startswith(("- ", "* ")):
        items = re.split(r"\n(?=\s*[-*] )", block)
        listed = Markup("").join(Markup("<li>{}</li>").format(inline(" ".join(item.split())[2:])) for item in items)
        return Markup("<ul>{}</ul>").format(listed)
    return Markup("<p>{}</p>").format(inline(" ".join(block.split())))


def safe_link(link: str | None) -> str | None:
    """The link where it is one of the web's, else None: a `javascript:` link is no source."""
    return link if link and _LINK.fullmatch(link) else None
