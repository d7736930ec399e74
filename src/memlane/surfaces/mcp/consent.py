"""The page on which somebody lets a program in: what it says, and the code that only who runs the server can read.

The page has no script and loads nothing, cannot be shown inside another page, and what a program says of itself is
text. The code is printed where the server runs when a page first needs one. It is good for one time, for a while, and
for a few attempts: after those there is another one, which takes its time to come, so that guessing goes nowhere.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from html import escape
from urllib.parse import urlsplit

from memlane.core.access import RIGHTS, highest

CODE_TIME = 600.0  # seconds that a printed code is good for
ATTEMPTS = 5  # at one code
PAUSE = 60.0  # seconds before there is another one after that
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"  # no vowels, so no words, and nothing that is mistaken for something else

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


class Code:
    """The code of this moment. `say` prints a line where the server runs."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._code = ""
        self._ends = self._next = 0.0
        self._wrong = 0

    def needed(self) -> str:
        """Print a code, unless there is one. Returns why there is none: ""  when there is."""
        now = self._clock()
        if self._code and now < self._ends:
            return ""
        if now < self._next:
            return f"There were too many wrong codes. A new one is printed in {int(self._next - now) + 1} seconds."
        self._code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        self._ends, self._wrong = now + CODE_TIME, 0
        self._say(
            f"somebody asks to connect a program. The code for the page is {self._code[:4]}-{self._code[4:]}, "
            f"for {CODE_TIME / 60:.0f} minutes and one program; if it is not you, give it to nobody"
        )
        return ""

    def taken(self, typed: str) -> str:
        """Take the code: it is no longer good then. Returns why it is not the one: "" when it is."""
        if why := self.needed():
            return why
        given = "".join(char for char in typed.upper() if char.isalnum())
        if hmac.compare_digest(given.encode(), self._code.encode()):
            self._code = ""
            return ""
        self._wrong += 1
        if self._wrong < ATTEMPTS:
            return "That is not the code that was printed where the server runs."
        self._code, self._next = "", self._clock() + PAUSE
        return f"That was not the code, too often. Reload the page in {PAUSE:.0f} seconds: there is a new one then."


def page(program: str, redirect: str, server: str, asked: Iterable[str], typed: Mapping[str, str], why: str) -> str:
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
        f"claim. When you allow it, your browser goes to <strong>{escape(_place(redirect))}</strong>, and whoever is "
        f"there can use the memory.</p>"
        f"{f'<p class=why role=alert>{escape(why)}</p>' if why else ''}"
        f'<form method=post action="/oauth/consent"><input type=hidden name=request value="{escape(typed["request"])}">'
        f"<fieldset><legend>It may</legend>{rights}</fieldset>"
        f"<label>Only memories of these scopes <small>Names with spaces between them; empty: the whole bank.</small>"
        f'<input type=text name=scopes value="{scopes}" autocomplete=off maxlength=500></label>'
        f"<label>Name of the connection <small>What it writes is written in this name.</small>"
        f'<input type=text name=name value="{name}" maxlength=40 required></label>'
        f"<label>Code <small>It was printed where the server runs: in its terminal or its log.</small>"
        f"<input type=text name=code autocomplete=off maxlength=20 autofocus></label>"
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


def _place(redirect: str) -> str:
    """Where a redirect leads, in the words of an address."""
    parts = urlsplit(redirect)
    return f"a program on this computer ({parts.netloc})" if parts.scheme == "http" else parts.netloc


def _source(redirect: str) -> str:
    """The redirect's origin for `form-action`, which browsers also apply to where a form's answer leads."""
    parts = urlsplit(redirect)
    if not parts.scheme:
        return ""
    return " http:" if "[" in parts.netloc else f" {parts.scheme}://{parts.netloc}"  # it has no words for IPv6


def _html(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f"<title>{title} · memlane</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
