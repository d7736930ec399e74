"""The page on which somebody lets a program in: what it says, and the code that only who runs the server can read.

The page has no script and loads nothing, cannot be shown inside another page, and what a program says of itself is
text. Each request has a number, which the page shows, and a code of its own, which is printed where the server runs.
The code is too long to be guessed, so wrong ones are not counted: nobody can use up somebody else's attempts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from html import escape
from urllib.parse import urlsplit

from memlane.config.grants import spaced
from memlane.core.access import RIGHTS, highest
from memlane.core.invisible import escaped

LINES = 100  # codes that are printed in PERIOD; strangers can ask for many, and nobody reads more
PERIOD = 900.0  # seconds

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24;
  background: #fff }
h1 { font-size: 1.4rem } strong { overflow-wrap: anywhere } fieldset { border: 1px solid #8c959f; margin: 1rem 0 }
label { display: block; margin: .4rem 0 } input[type=text] { font: inherit; width: 100%; box-sizing: border-box }
button { font: inherit; padding: .4rem 1rem; margin-right: .5rem } .why { color: #a40e26 }
small { display: block; color: #57606a }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .why { color: #ff8182 }
  small { color: #9da7b1 } }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_MAY = {
    "read": "read: search and read memories",
    "write": "write: also add memories",
    "remove": "remove: also change, replace and delete memories",
}


class Printer:
    """Prints the code of each request once, and no more lines than can be read. `say` prints where the server runs."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._say, self._clock = say, clock
        self._printed: dict[str, float] = {}  # when the code of a number was printed

    def tell(self, number: str, code: str, program: str, redirect: str) -> None:
        now = self._clock()
        self._printed = {each: at for each, at in self._printed.items() if now < at + PERIOD}
        if number in self._printed or len(self._printed) > LINES:
            return
        self._printed[number] = now
        if len(self._printed) > LINES:
            self._say(
                "more programs ask to connect than are named here. `memlane token code NUMBER` prints the code for the "
                "number that a page shows"
            )
            return
        self._say(  # the code first: what follows is a stranger's word
            f"somebody asks to connect a program. The code of request {spaced(number)} is {spaced(code)}; if it is not "
            f"you who asks, give it to nobody. The program calls itself {escaped(program) or 'nothing'}, and the "
            f"answer goes to {escaped(place(redirect))}"
        )


def page(
    program: str, redirect: str, server: str, asked: Iterable[str], number: str, typed: Mapping[str, str], why: str
) -> str:
    """The page for one program, which asks for these rights. `typed` is what an attempt left, `why` what was wrong."""
    preset = typed["right"] if typed.get("right") in RIGHTS else highest(asked) or "write"
    rights = "".join(
        f"<label><input type=radio name=right value={right}{' checked' * (right == preset)}> {text}</label>"
        for right, text in _MAY.items()
    )
    shown = escape(program) or "A program without a name"
    scopes, name = escape(typed.get("scopes", "")), escape(typed.get("name") or name_for(program))
    return _html(
        "Connect a program",
        f"<h1>Let a program use this memory?</h1>"
        f"<p><strong>{shown}</strong> asks to use the memory at <strong>{escape(server)}</strong>. The name is its own "
        f"claim. When you allow it, your browser goes to <strong>{escape(place(redirect))}</strong>, and whoever is "
        f"there can use the memory.</p>"
        f"{f'<p class=why role=alert>{escape(why)}</p>' if why else ''}"
        f'<form method=post action="/oauth/consent"><input type=hidden name=request value="{escape(typed["request"])}">'
        f"<fieldset><legend>It may</legend>{rights}</fieldset>"
        f"<label>Only memories of these scopes <small>Names with spaces between them; empty: the whole bank.</small>"
        f'<input type=text name=scopes value="{scopes}" autocomplete=off maxlength=500></label>'
        f"<label>Name of the connection <small>What it writes is written in this name.</small>"
        f'<input type=text name=name value="{name}" maxlength=40 required></label>'
        f"<label>Code <small>The code of request {spaced(number)} was printed where the server runs, in its terminal "
        f"or its log. <code>memlane token code {spaced(number)}</code> prints it there as well.</small>"
        f"<input type=text name=code autocomplete=off maxlength=40 autofocus></label>"
        f"<p><button name=decision value=allow>Allow</button><button name=decision value=deny formnovalidate>Deny"
        f"</button></p></form>",
    )


def refusal(why: str) -> str:
    """The page for a request that leads nowhere."""
    return _html("Not possible", f"<h1>That is not possible</h1><p class=why role=alert>{escape(why)}</p>")


def headers(redirect: str = "") -> dict[str, str]:
    """What a browser must not do with a page. `redirect` is where its form may lead to, besides this server."""
    return {
        "content-security-policy": (
            f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
            f"form-action 'self'{_source(redirect)}; frame-ancestors 'none'"
        ),
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


def name_for(program: str) -> str:
    """A name for a connection, of what a program calls itself."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else " " for char in program)
    return "-".join(plain.split())[:40].strip("-._") or "program"


def place(redirect: str) -> str:
    """Where a redirect leads, in the words of an address."""
    parts = urlsplit(redirect)
    if parts.scheme == "https":
        return parts.netloc
    if parts.scheme == "http":
        return f"a program on this computer ({parts.netloc})"
    return f"whichever program on this computer opens {parts.scheme}: addresses ({redirect})"


def _source(redirect: str) -> str:
    """The redirect's origin for `form-action`, which browsers also apply to where a form's answer leads."""
    parts = urlsplit(redirect)
    if not parts.scheme:
        return ""
    if parts.scheme not in ("http", "https") or "[" in parts.netloc:  # it has no words for IPv6
        return f" {parts.scheme}:"
    return f" {parts.scheme}://{parts.netloc}"


def _html(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f"<title>{title} · memlane</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
