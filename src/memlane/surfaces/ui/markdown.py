"""A memory's Markdown as a tree of elements for the page to build: no HTML is ever made of it.

    ["p", {}, ["Deploys go out on ", ["strong", {}, ["Tuesdays"]], "."]]

Whatever an agent reads is to be seen, too: a text of which Markdown would hide words, such as [these]: # (comments), is
shown as it is written. Markup inside the text stays text. A link leads to http, https, mail or, written as [[target]],
to a memory or file of the bank; any other is shown as it is written. Pictures are not loaded: they are links.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from memlane.core.patterns import lazily

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

Node = list[Any] | str
MOST = 200_000  # characters that are shown as Markdown; the rest follows as it is
_ELEMENTS = {
    "paragraph": "p", "bullet_list": "ul", "list_item": "li", "blockquote": "blockquote", "em": "em",
    "strong": "strong", "s": "s", "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th",
    "td": "td", "hr": "hr", "hardbreak": "br",
}  # fmt: skip
_OUT = ("http", "https", "mailto")
_WORD = lazily(r"[^\W_]+")
_WIKI = lazily(r"\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]\n]{1,200}))?\]\]")


def tree(text: str) -> list[Node]:
    """The elements of a text."""
    begin = text[:MOST]
    found = _nodes(_parsed(begin))
    if _words(begin) - _shown(found):
        found = [["pre", {}, [begin]]]
    return [*found, ["pre", {}, [text[MOST:]]]] if len(text) > MOST else found


def _words(text: str) -> Counter[str]:
    """The words of a text, each with how often it is there. Numbers are none: those of lists are not in the text."""
    return Counter(word for word in _WORD.findall(unquote(unescape(text))) if not word.isdecimal())


def _shown(nodes: list[Node]) -> Counter[str]:
    """The words that somebody sees of these elements, now or with the pointer on them."""
    found: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, str):
            found.update(_words(node))
        else:
            found.update(_words(" ".join(map(str, node[1].values()))))
            found.update(_shown(node[2]))
    return found


def _parsed(text: str) -> list[SyntaxTreeNode]:
    from markdown_it.tree import SyntaxTreeNode

    return SyntaxTreeNode(_parser().parse(text)).children


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])


def _nodes(nodes: list[SyntaxTreeNode]) -> list[Node]:
    return [made for node in nodes for made in _node(node)]


def _node(node: SyntaxTreeNode) -> list[Node]:
    kind = node.type
    if kind == "inline":
        return _nodes(node.children)
    if kind == "text":
        return _with_targets(node.content)
    if kind == "softbreak":
        return ["\n"]
    if kind == "code_inline":
        return [["code", {}, [node.content]]]
    if kind in ("fence", "code_block"):
        code: Node = ["code", {}, [node.content]]
        words = node.info.split()
        if len(words) == 1:  # the language
            return [["pre", {"title": words[0]}, [code]]]
        return [["pre", {}, [f"{node.info}\n", code] if words else [code]]]
    if kind == "heading":  # the page has the first two levels itself
        return [[f"h{min(int(node.tag[1:]) + 2, 6)}", {}, _nodes(node.children)]]
    if kind == "ordered_list":
        start = node.attrs.get("start", 1)
        return [["ol", {"start": start} if start != 1 else {}, _nodes(node.children)]]
    if kind == "link":
        return [_link(str(node.attrs.get("href", "")), _nodes(node.children))]
    if kind == "image":
        return [_link(str(node.attrs.get("src", "")), [node.content or "picture"])]
    if kind in _ELEMENTS:
        return [[_ELEMENTS[kind], {}, _nodes(node.children)]]
    return [node.content] if node.content else _nodes(node.children)


def _link(target: str, inside: list[Node]) -> Node:
    try:
        scheme = urlsplit(target).scheme.lower()
    except ValueError:
        scheme = ""
    if scheme in _OUT:
        return ["a", {"href": target}, inside]
    return ["span", {"title": target}, inside]


def _with_targets(text: str) -> list[Node]:
    """A text with its [[targets]] as links into the bank."""
    found: list[Node] = []
    end = 0
    for match in _WIKI.finditer(text):
        target, alias = match[1].strip(), match[2] or ""
        typed = alias.startswith("type:")
        facts = {"href": f"/to/{quote(target, safe='')}"} | ({"title": alias} if typed else {})
        found += [text[end : match.start()], ["a", facts, [target if typed else alias or target]]]
        end = match.end()
    return [each for each in (*found, text[end:]) if each]
