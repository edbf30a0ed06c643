"""What Markdown and HTML leave in a text: their signs go, their words stay."""

import html
import re

from mosstalk.text.normalise.language import Language
from mosstalk.text.normalise.reading import Reading

_ELEMENTS = (
    "a|abbr|article|aside|b|big|blockquote|body|br|button|center|cite|code|dd|del|div|dl|dt|em|"
    "figcaption|figure|font|footer|h[1-6]|head|header|hr|html|i|img|ins|kbd|label|li|main|mark|nav|"
    "ol|option|p|pre|q|s|section|small|span|strong|sub|sup|table|tbody|td|tfoot|th|thead|title|tr|"
    "tt|u|ul|var"
)
_BLOCKS = re.compile(
    "(?:article|blockquote|body|br|dd|div|dt|h[1-6]|hr|li|ol|p|section|td|th|tr|ul)"
)
_SCRIPT = re.compile(r"(?is)<(script|style)\b[^>]*>.{0,50000}?</\1\s*>")
_COMMENT = re.compile(r"(?s)<!--.{0,5000}?-->")
_TAG = re.compile(r"(?i)(?P<gap>[ \t]{0,8})</?(?P<name>" + _ELEMENTS + r")(?:\s[^<>]{0,2000})?/?>")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[^\n`]*\n?")
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^()\s]*(?:\s\"[^\"\n]*\")?\)")
_LINK = re.compile(r"\[([^\]\n]+)\]\((?:[^()\s]|\([^()\s]{0,200}\)){0,2000}(?:\s\"[^\"\n]*\")?\)")
_REFERENCE = re.compile(r"\[\^[\w-]+\]")
_RULE = re.compile(r"(?m)^[ \t]*(?:[-*_][ \t]*){3,}$\n?")
_HEADING = re.compile(r"(?m)^[ \t]{0,3}#{1,6}[ \t]+(?P<text>[^\n]*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"(?m)^[ \t]*[-*+•‣▪●◦·][ \t]+(?P<text>\S[^\n]*?)[ \t]*$")
_NUMBERED = re.compile(r"(?m)^[ \t]*\d{1,3}[.)][ \t]+\S[^\n]*?[ \t]*$")
_QUOTED = re.compile(r"(?m)^[ \t]*>+[ \t]?(?=\S)")
_TABLE_LINE = re.compile(
    r"(?m)^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$\n?"
)
_TABLE_ROW = re.compile(r"(?m)^[ \t]*\|(?P<cells>[^\n]*?)\|?[ \t]*$")
_STRONG = re.compile(
    r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?!\*)|(?<=[\u3040-\u9fff])(\*\*)([^*\n]+?)\3"
)
_LINED = re.compile(r"(?<![\w_])(_{1,3})(?=[^\s_])([^\n]{1,300}?)(?<=[^\s_])\1(?![\w_])")
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)~~")
_CODE = re.compile(r"(`{1,3})([^`\n]+?)\1")


def read_markup(reading: Reading) -> None:
    """Take the marks of Markdown and HTML away. A heading or an item of a list ends a sentence."""
    found = [match.group()[:40] for match in _SCRIPT.finditer(reading.text)]
    if found:
        reading.warnings.append(f"left out of the text as it is a program: {found[0]}...")
    reading.rewrite(_SCRIPT, _nothing)
    reading.rewrite(_COMMENT, _nothing)
    reading.rewrite(_TAG, _tag)
    reading.rewrite(_ENTITY, _entity)
    reading.rewrite(_FENCE, _nothing)
    reading.keep(_IMAGE, _no_stop)
    reading.keep(_LINK, _no_stop)
    reading.rewrite(_REFERENCE, _nothing)
    reading.rewrite(_TABLE_LINE, _nothing)
    reading.rewrite(_TABLE_ROW, _row)
    reading.rewrite(_RULE, _nothing)
    reading.keep(_HEADING, _stop)
    reading.rewrite(_QUOTED, _nothing)
    reading.keep(_ITEM, _stop)
    reading.rewrite(_NUMBERED, _numbered)
    for pattern in (_STRONG, _STRONG, _LINED, _STRUCK, _CODE):
        reading.keep(pattern, _no_stop)


def _nothing(match: re.Match[str], table: Language) -> str:
    return ""


def _no_stop(text: str, table: Language) -> str:
    return ""


def _tag(match: re.Match[str], table: Language) -> str:
    if not _BLOCKS.fullmatch(match["name"].lower()):
        return match["gap"]
    before = match.string[max(0, match.start() - 8) : match.start()].rstrip()[-1:]
    stop = "." if table.spaced else "。"
    return f"{stop} " if before.isalnum() else " "


def _entity(match: re.Match[str], table: Language) -> str | None:
    text = html.unescape(match.group())
    return None if text == match.group() else text.replace("\u00a0", " ")


def _row(match: re.Match[str], table: Language) -> str:
    cells = [cell.strip() for cell in match["cells"].split("|")]
    comma = ", " if table.spaced else "，"
    text = comma.join(cell for cell in cells if cell)
    return text + _stop(text, table)


def _numbered(match: re.Match[str], table: Language) -> str | None:
    """An item among others; a line alone may begin with a date."""
    text = match.string
    before = text[text.rfind("\n", 0, max(0, match.start() - 1)) + 1 : max(0, match.start() - 1)]
    after = text[match.end() + 1 :].split("\n", 1)[0]
    if not (_NUMBERED.fullmatch(before) or _NUMBERED.fullmatch(after)):
        return None
    return match.group() + _stop(match.group(), table)


def _stop(text: str, table: Language) -> str:
    """What ends the sentence that `text` is, where it has no end yet."""
    if not text or not (text[-1].isalnum() or text[-1] in ')）"”*_`'):
        return ""
    return "." if table.spaced else "。"
