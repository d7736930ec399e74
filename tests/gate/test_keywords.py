"""The keywords of a text are the same, however much was read before."""

from __future__ import annotations

from memlane.gate.secrets.keywords import held

TEXT = "the api key and the db_password of user@host are in vault, not in a .env file; bearer xyz, passwort: geheim\n"


def test_a_short_text_and_a_long_one_are_searched_alike() -> None:
    found = held(TEXT)
    assert {"api", "password", "bearer"} & found
    assert held(TEXT * 1000) == found
    assert held(TEXT) == found


def test_a_keyword_behind_thousands_of_others_is_found() -> None:
    assert held(TEXT * 1000 + "sqlplus") == held(TEXT) | {"sqlplus"}
