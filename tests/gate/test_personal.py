"""Numbers of persons: each country's id with its checksum and its word, and telephone numbers on request."""

from __future__ import annotations

import pytest

from memlane.gate.secrets import scan

IDS = {
    "cpf": ("CPF: {}", "529.982.247-25", "529.982.247-26"),
    "aadhaar": ("Aadhaar no. {}", "2341 2341 2346", "2341 2341 2347"),
    "pesel": ("PESEL {}", "44051401359", "44051401358"),
    "codice-fiscale": ("Mario, {}", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
    "dni": ("su DNI es {}", "12345678-Z", "12345678-A"),
    "nino": ("National Insurance: {}", "AB 12 34 56 C", "BG 12 34 56 C"),
    "resident-id": ("身份证号：{}", "11010519491231002X", "110105194912310021"),
    "sin": ("his SIN is {}", "130 692 544", "130 692 545"),
    "nir": ("numéro de sécurité sociale {}", "1 85 05 78 006 084 91", "1 85 05 78 006 084 92"),
    "steuer-id": ("Steuer-ID {}", "86095742719", "86095742718"),
    "ssn": ("SSN {}", "536 22 8726", "000 22 8726"),
}


@pytest.mark.parametrize("rule", IDS)
def test_an_id_is_found_beside_its_word_when_its_checksum_is_right(rule: str) -> None:
    frame, right, wrong = IDS[rule]
    text = frame.format(right)
    (finding,) = scan(text)
    assert (finding.rule, finding.kind, text[finding.start : finding.end]) == (rule, "pii", right)
    assert scan(frame.format(wrong)) == []


@pytest.mark.parametrize("rule", sorted(IDS.keys() - {"codice-fiscale"}))
def test_an_id_without_its_word_is_a_number(rule: str) -> None:
    """A codice fiscale has a form that nothing else has."""
    assert scan(f"Latency by region: {IDS[rule][1]}") == []


@pytest.mark.parametrize("text", ["Latency: 240 46 2210", "sizes 512 64 2048", "it is no sin 130692544", "078-05-1120"])
def test_other_numbers_pass(text: str) -> None:
    assert scan(text) == []


@pytest.mark.parametrize(
    "text", ["755 200 6802", "1-608-842-7042", "13951345679", "(608) 842-7042", "138 0013 8000", "+49 30 1234567"]
)
def test_a_telephone_number_is_found_on_request(text: str) -> None:
    (finding,) = scan(f"Call {text}.", phone=True)
    assert (finding.rule, f"Call {text}."[finding.start : finding.end]) == ("phone", text)
    assert scan(f"Call {text}.") == []


@pytest.mark.parametrize("text", ["1700000000000", "in 2024 12 3456 runs", "version 755.200.68.02", "1395134567"])
def test_numbers_that_nobody_dials_are_no_telephone_numbers(text: str) -> None:
    assert scan(text, phone=True) == []
