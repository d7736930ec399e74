"""`memlane edit`: change a memory, in the user's own editor or by what the command says."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from memlane.bank import Bank
from memlane.core.errors import Conflict, InvalidInput, MemlaneError, Refused
from memlane.core.model import Memory
from memlane.disk import files
from memlane.exchange import editing as edits
from memlane.gate import redacted
from memlane.recall import address, under
from memlane.surfaces.cli.add import appended, change_options, changed
from memlane.surfaces.cli.options import id_argument, text_argument, with_bank
from memlane.surfaces.cli.output import complain, print_json, print_written, say

_EDITORS = ("sensible-editor", "editor", "nano", "vim", "vi")


@click.command()
@id_argument
@text_argument
@click.option("--append", "appending", is_flag=True, help="Add TEXT to the end instead.")
@change_options
@with_bank
def edit(bank: Bank, id: str, text: str | None, appending: bool, as_json: bool, **changes: Any) -> None:
    """Change a memory's TEXT or fields; without any of them, open it in $VISUAL or $EDITOR.

    What is not named stays as it is. In the editor, a note, a record and a layer's file open whole, front matter
    included; of a vault record and of a topic's entry, the text. It is checked before it is stored. Where somebody else
    changed the memory meanwhile, nothing is written, and your text is printed.

    \b
    $ memlane edit notes:deploy-day
    $ memlane edit notes:deploy-day "Deploys go out on Wednesdays." --tag release
    $ memlane edit notes:deploy-day --old Wednesdays --new Thursdays
    $ memlane edit notes:deploy-day --append "Not before holidays."
    """
    given = any(value not in (None, ()) for value in changes.values())
    if appending:
        if given:
            raise click.UsageError("--append takes a TEXT, and nothing else.")
        print_written(appended(bank, id, text), as_json, "appended to")
    elif given or text is not None:
        print_written(changed(bank, id, text, **changes), as_json, "updated")
    else:
        in_editor(bank, id, as_json)


def in_editor(bank: Bank, id: str, as_json: bool) -> None:
    """Let the user edit a memory, again and again if it is refused, and store it."""
    at, id = under.home(bank, id)
    opened = edits.opened(at, id)

    def named(memory: Memory) -> Memory:
        return memory if at is bank else under.as_users(memory)

    before = given = opened.text if opened.text.endswith("\n") else opened.text + "\n"
    while True:
        try:
            text = _edited(given, opened.place.path)
            if text == before:
                say("nothing changed")
                if as_json:
                    print_json(named(address.get(at, opened.id)))
                return
            given = text
            by_person = sys.stdin.isatty() and sys.stderr.isatty()
            print_written(named(edits.save(at, opened, text, by_person=by_person)), as_json, "updated")
            return
        except Conflict:
            if as_json:
                print_json({"id": opened.id, "text": redacted(given)})
            else:
                say("note: what you wrote follows, for it was not stored")
                click.echo(redacted(given), nl=False)
            raise
        except (Refused, InvalidInput) as error:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                error.hint = f"{error.hint} Nothing was changed.".strip()
                raise
            complain(error)
            if not click.confirm("Edit again?", default=True, err=True):
                say("nothing changed")
                click.get_current_context().exit(error.exit_code)


def _edited(text: str, path: str) -> str:
    """Let the user edit a text, in a file in a private folder that is removed afterwards, and return the result.

    Raises MemlaneError if the editor fails, InvalidInput if it leaves no text.
    """
    command = _editor()
    with tempfile.TemporaryDirectory(prefix="memlane-edit-") as folder:  # 0700
        copy = os.path.join(folder, f"{Path(path).stem or 'memory'}.md")
        files.create(copy, text.encode())
        # Ctrl-C belongs to the editor while it runs. An empty handler, because the editor would inherit SIG_IGN.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            code = subprocess.Popen([*command, copy]).wait()  # noqa: S603 - the user's own editor
        except OSError as error:
            raise _no_editor(f"{command[0]} cannot be started: {error.strerror}.") from None
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            raise MemlaneError(f"The editor ended with code {code}. Nothing was changed.", hint="Try again.")
        try:
            return Path(copy).read_bytes().decode()
        except FileNotFoundError:
            raise InvalidInput("The editor left no file.", hint="Save under the name that was opened.") from None
        except UnicodeDecodeError:
            raise InvalidInput("The text is not UTF-8.", hint="Save it as UTF-8.") from None


def _editor() -> list[str]:
    """The command of the user's editor. Raises MemlaneError when there is none."""
    for name in ("VISUAL", "EDITOR"):
        if value := os.environ.get(name, "").strip():
            try:
                return shlex.split(value)
            except ValueError:
                raise _no_editor(f"${name} is not a command: a quote is not closed.") from None
    if sys.stdin.isatty():
        for name in _EDITORS:
            if editor := shutil.which(name):
                return [editor]
    raise _no_editor("There is no editor to open it in.")


def _no_editor(why: str) -> MemlaneError:
    hint = "Set EDITOR, for example: EDITOR=nano memlane edit ID. Or give the new text: memlane edit ID TEXT."
    return MemlaneError(why, hint=hint, code="no_editor")


@click.command()
@id_argument
@click.argument("new", metavar="NAME")
@with_bank
def rename(bank: Bank, id: str, new: str, as_json: bool) -> None:
    """Give a note another NAME, in another folder or not; links to it, what is watched for it and its history follow.

    \b
    $ memlane rename deploy-day ops/release-day
    """
    before = bank.get(id, expired=True).id
    moved = bank.move(id, new)
    print_written(moved, as_json, "moved to" if moved.id != before else "nothing changed in")
