"""What the page asks for. A question is a function of the bank and of what was asked, which returns plain values.

    GET  /api/search?q=…    →  READS["search"](bank, {"q": …})     →  JSON
    POST /api/update {…}    →  WRITES["update"](bank, {…})          →  JSON

What a function raises is answered as {"code", "message", "hint"}. Whatever leaves has no secrets in it. What is written
is the user's word: only the user has this page. Each write is one change, and its answer has `changes`, which the
question "undo" takes back. Questions about the whole bank (SLOW), which take long for the first time, have a bank of
their own, so that a search does not wait for them; those that look through all of it each time (ASIDE) have a process.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memlane.bank import Bank
from memlane.core.errors import MemlaneError, StorageError
from memlane.disk import journal
from memlane.gate.outgoing import cleaned
from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.ui.api import changes, graph, health, inbox, memory, search, sessions, timeline, truth
from memlane.surfaces.ui.aside import Aside
from memlane.surfaces.ui.asking import Asked, Clean, Question

_READ = (sessions, inbox, search, memory, timeline, truth, health, graph)
_CHANGED = (changes, sessions, inbox, memory, truth, health)
READS: Mapping[str, Question] = {name: question for view in _READ for name, question in view.READS.items()}
WRITES: Mapping[str, Question] = {name: question for view in _CHANGED for name, question in view.WRITES.items()}
SLOW = frozenset("choices timeline as-of graph inbox candidate told to".split())
ASIDE = frozenset("inbox-count truth truth-count health".split())
_STATUS = {"not_trusted": 403, "not_found": 404, "already_exists": 409, "conflict": 409, "refused": 422}


def routes(bank: SharedBank, aside: Aside) -> list[Route]:
    slow = SharedBank(bank.folder, bank.flags)

    async def read(request: Request) -> Response:
        name, params = request.path_params["name"], request.query_params
        values = {name: params.getlist(name) for name in params.keys()}  # noqa: SIM118 - it has some of them twice
        asked = {name: found if found[1:] else found[0] for name, found in values.items()}
        if name in ASIDE and (answer := await aside.answer(name, asked, request.is_disconnected)):
            return Response(answer.body, answer.status, media_type="application/json")
        return await _answer(slow if name in SLOW | ASIDE else bank, READS.get(name), asked)

    async def write(request: Request) -> Response:
        question = WRITES.get(request.path_params["name"])
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            return _json({"code": "invalid_input", "message": "That is not a JSON object.", "hint": ""}, 400)
        return await _answer(bank, question and partial(_written, question, request.path_params["name"]), asked)

    return [Route("/api/{name}", read, methods=["GET"]), Route("/api/{name}", write, methods=["POST"])]


async def _answer(bank: SharedBank, question: Question | None, asked: Asked) -> Response:
    if question is None:
        return _json({"code": "not_found", "message": "There is no such question.", "hint": "Load the page anew."}, 404)
    try:
        status, value = 200, await bank.run(lambda opened: answered(opened, question, asked))
    except Exception as error:
        status, value = failed(error)
    return _json(value, status)


def failed(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the sentence that a failed question is answered with."""
    if isinstance(error, OSError):  # a full disk, a folder that is not ours, a name that is too long
        why = f"The disk said no: {error.strerror or 'it cannot be read or written'}."
        error = StorageError(why, hint="Check the bank's folder, its permissions and the disk.")
    if isinstance(error, MemlaneError):
        return _STATUS.get(error.code, 400), error.to_dict()
    where = traceback.extract_tb(error.__traceback__)[-1]  # a bug of ours: its message may hold what somebody wrote
    why = f"memlane failed: {type(error).__name__} in {os.path.basename(where.filename)}:{where.lineno}."
    return 500, {"code": "bug", "message": why, "hint": "Nothing is lost. Please report it, with this sentence."}


def _written(question: Question, name: str, bank: Bank, asked: Asked) -> dict[str, Any]:
    with journal.acting("ui", users=True), journal.change(name) as made:
        answer = question(bank, asked)
    return {**answer, "changes": changes.made_by(made, bank)}


def answered(bank: Bank, question: Question, asked: Asked) -> Any:
    """A question's answer, without secrets."""
    answer = question(bank, asked)
    if isinstance(answer, Clean):
        return answer.answer
    plain = json.loads(json.dumps(answer, default=lambda value: value.to_dict()))
    return cleaned(plain, bank.guard)


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")
