"""The scanner: what it finds, what it lets pass, and that hostile text costs it no more than plain text.

Every secret here is put together at run time, so that the file itself holds none.
"""

from __future__ import annotations

import base64
import binascii
import json
import random
import re
import string
import subprocess
import sys
import time
import zlib
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.gate import secrets
from memlane.gate.secrets import RULES, Finding, check_pii, redact, scan
from memlane.gate.secrets.scanner import MOST, _matches

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def key(length: int, alphabet: str = BASE62, seed: int = 7) -> str:
    """A random key, the same on every run, with a digit and a letter in it."""
    chosen = random.Random(seed).choices(alphabet, k=length - 2)
    return "".join(chosen) + "7" + ("a" if "a" in alphabet else alphabet[-1])


def hexkey(length: int, seed: int = 7) -> str:
    """Random hex."""
    return key(length, "0123456789abcdef", seed)


def rules_of(text: str) -> list[str]:
    """The rules that a text trips."""
    return [finding.rule for finding in scan(text)]


def jwt() -> str:
    """A token whose header decodes."""
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": "1", "iat": 1700000000})]
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, key(43)])


def github_with_checksum() -> str:
    """A classic token whose last six characters are the checksum of the others."""
    body = "example" + key(23)
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, rest = divmod(number, 62)
        digits = BASE62[rest] + digits
    return "gh" + "p_" + body + digits.rjust(6, "0")


def seed(kind: int) -> str:
    """A key pair's seed in base32, with its checksum."""
    body = bytes([18 << 3 | kind >> 5, (kind & 31) << 3]) + random.Random(7).randbytes(32)
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")


FOUND = {
    "aws-access-key": "AK" + "IA" + key(16, string.ascii_uppercase + "234567"),
    "aws-key": "aws_secret_access_key = " + key(38) + "/+",
    "gcp-api-key": "AI" + "za" + key(35),
    "google-oauth-secret": "GOC" + "SPX-" + key(28),
    "azure-connection-string": "AccountName=a;Account" + "Key=" + key(86) + "==;EndpointSuffix=core.windows.net",
    "azure-client-secret": "abc8" + "Q~" + key(34),
    "digitalocean-token": "dop" + "_v1_" + hexkey(64),
    "github-token": "gh" + "p_" + key(36),
    "github-fine-grained-token": "github" + "_pat_" + key(22) + "_" + key(59),
    "gitlab-token": "gl" + "pat-" + key(20),
    "atlassian-token": "ATA" + "TT3" + key(186),
    "npm-token": "np" + "m_" + key(36),
    "pypi-token": "pypi-" + "AgEIcHlwaS5vcmc" + key(80),
    "docker-token": "dckr" + "_pat_" + key(27),
    "anthropic-key": "sk-" + "ant-api03-" + key(93) + "AA",
    "openai-key": "sk-" + "proj-" + key(48),
    "llm-key": "sk" + "-" + key(48),
    "huggingface-token": "h" + "f_" + key(34, string.ascii_letters, 3),
    "groq-key": "gs" + "k_" + key(52),
    "slack-token": "xox" + "b-" + "123456789012-1234567890123-" + key(24),
    "slack-webhook": "https://hooks.slack" + ".com/services/T" + key(8) + "/B" + key(8) + "/" + key(24),
    "discord-webhook": "https://discord.com/api/web" + "hooks/123456789012345678/" + key(68),
    "telegram-token": "123456789" + ":AA" + key(33),
    "twilio-key": "S" + "K" + hexkey(32),
    "sendgrid-key": "S" + "G." + key(22) + "." + key(43),
    "mailchimp-key": hexkey(32) + "-us" + "12",
    "stripe-key": "sk_" + "live_" + key(24),
    "shopify-token": "shp" + "at_" + hexkey(32),
    "sentry-token": "sntr" + "yu_" + hexkey(64),
    "grafana-token": "gl" + "sa_" + key(32) + "_" + hexkey(8),
    "notion-token": "nt" + "n_" + key(46),
    "linear-key": "lin" + "_api_" + key(40),
    "airtable-token": "pat" + key(14) + "." + hexkey(64),
    "postman-key": "PMA" + "K-" + hexkey(24) + "-" + hexkey(34),
    "doppler-token": "dp." + "pt." + key(43),
    "vault-token": "hv" + "s." + key(90),
    "terraform-token": key(14) + ".atlas" + "v1." + key(64),
    "databricks-token": "dap" + "i" + hexkey(32),
    "planetscale-token": "pscale" + "_tkn_" + key(43),
    "datadog-key": "datadog_api: " + hexkey(32),
    "heroku-key": "heroku = 01234567-" + "89ab-4def-8123-456789abcdef",
    "private-key": "-----BEGIN RSA PRI" + "VATE KEY-----\n" + key(64) + "\n-----END RSA PRIVATE KEY-----",
    "age-key": "AGE-SECRET" + "-KEY-1" + key(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L").replace("a", "A"),
    "jwt": jwt(),
    "nkey-seed": "seed " + seed(20 << 3),
    "vault-secret-id": "SECRET" + "_ID=01234567-89ab-4def-8123-456789abcdef",
    "jwk-private-key": json.dumps({"kty": "oct", "k": key(43)}),
    "cosmo-key": "cos" + "mo_" + hexkey(32),
    "mem0-key": "m" + "0-" + key(40),
    "url-password": "postgres://app:" + "s3cr3tPw9" + "@db.internal:5432/app",
    "basic-auth": "Authorization: Basic " + base64.b64encode(b"bob:" + b"hunter22").decode(),
    "bearer-token": "Authorization: Bearer " + key(30),
    "curl-login": "curl -s -u bob:" + "hunter22" + " https://api.internal/v1",
    "netrc-password": "machine api.internal login bob password " + "hunter22",
    "docker-auth": '{"auths": {"r.io": {"auth": "' + base64.b64encode(b"bob:" + b"hunter22").decode() + '"}}}',
    "password-hash": "bob:$2" + "b$12$" + key(53),
    "assigned-secret": "client_secret: " + "Zx81-kk2-PPq",
    "named-secret": "Acme access token " + key(32),
    "prefixed-key": "acme" + "_live_" + key(32),
    "password": "db_password = '" + "tr0ub4dor&3" + "'",
    "ssn": "ssn 536-" + "22-8726",
    "card": "paid with 4539 1488 " + "0343 6467",
    "iban": "send it to DE89 3704 0044 " + "0532 0130 00",
}

CLEAN = [
    "The login: src/auth.py:login handles it.",
    "The login is lib/session.rb, see there.",
    "Deployed commit 3f786850e387550fdab836ed7e6dc881de23001b to production.",
    "Request 123e4567-e89b-12d3-a456-426614174000 failed twice.",
    "image: repo/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+Sfag=="',
    "md5 (file) = d41d8cd98f00b204e9800998ecf8427e",
    "The docs use AKIA" + "IOSFODNN7EXAMPLE as a stand-in.",
    "api_key: <your-token>",
    "token = xxxxxxxxxxxxxxxxxxxx",
    "password: ********",
    "export GITHUB_TOKEN=$GH_TOKEN",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_db_password }}",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "const token = process.env.API_TOKEN;",
    "password: changeme",
    "We took a risk-based approach to the task-list.",
    "The API key lives in the vault.",
    "password: stored in the vault",
    "password: <your-password>",
    "The password is required and must be long.",
    "The bearer token expires after an hour.",
    "The bearer of this letter arrived.",
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA)",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bob@host",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYD\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3ch\n-----END PUBLIC KEY-----",
    "see https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
    "max_tokens: 4096, primary_key: user_id, keyboard: us",
    "cache-key: linux-node-3f786850e387550fdab836ed7e6dc881de23001b",
    "public key: r3imyh3MCYggaZACmkx+CxlD6uAmICI8pe/PGq8+qCg=",
    "token = response.data.accessToken2",
    "self.password = hash_password(raw_password_1)",
    "postgres://user:password@localhost/db",
    "mysql://scott:tiger@localhost/db",
    "Updated 1639512345678, order 123456789, ref 4111-1111.",
    "src/components/KeyboardShortcuts/useKeyboardShortcuts2.tsx",
    'function(e,t){"use strict";var n=t.key,r=e.token;return n.passKey1=r.auth2Value}',
    "call 555-0100 or write to bob@example.org",
    "export TOKEN=ghp_" + "K9e4XM3V2Q45Qp7DcwZO...",
    "-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJvdGhlciJ9.signature",
    "withCredentials(credentialsId: '29f63271-dc2f-4734-8221-5b31b5169bac')",
    "user = (char *) (p + 1);\npwd = (char *) (p + ulen + 2);",
    "UserModel(username='scolvin', password1='zxcvbn', password2='zxcvbn')",
    "MAIL_USERNAME: bob\nMAIL_PASSWORD: my_service_password",
    "docker run -p 8080:80 -u 1000:1000 nginx",
    "The user was identified by Marie2 in the log.",
    "We hash the password with PBKDF2WithHmacSHA256 and a salt.",
    "| field | password |\n|---|---|\n| type | string |",
    "The browser uses pk_" + "live_K9e4XM3V2Q45Qp7DcwZOy27a",
    'const alphabetKey = "0123456789abcdefghijklmnopqrstuvwxyz"',
]


@pytest.mark.parametrize("rule", FOUND, ids=str)
def test_finds(rule: str) -> None:
    """Each class of secret is found once in a note, named, and gone after redaction."""
    text = f"Some notes.\n\n{FOUND[rule]}\nMore notes.\n"
    assert rules_of(text) == [rule]
    assert rules_of(redact(text, scan(text))) == []


def test_overlapping_findings_become_one() -> None:
    """A token in a header is reported once, by the row that knows it best."""
    token = FOUND["github-token"]
    assert rules_of(f"Authorization: Bearer {token}") == ["github-token"]
    assert redact(f"token: {token}", scan(f"token: {token}")) == "token: [REDACTED:github-token]"


def test_private_key_is_redacted_whole() -> None:
    """Nothing of a key's body stays, on many lines or on one with escaped breaks."""
    body = [key(64, seed=seed) for seed in range(20)]
    for newline in ("\n", "\\n"):
        text = newline.join(["-----BEGIN PRI" + "VATE KEY-----", *body, "-----END PRIVATE KEY-----"])
        assert redact(f'"k": "{text}"', scan(f'"k": "{text}"')) == '"k": "[REDACTED:private-key]"'


@pytest.mark.parametrize("text", CLEAN)
def test_passes(text: str) -> None:
    """What only looks like a secret passes."""
    assert rules_of(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "export ACME_TOKEN={}",
        "acme_token: {}",
        '"acmeToken": "{}",',
        "acme-token = '{}'",
        'let acmeToken = "{}";',
        "acme --token {} deploy",
        "<acmeToken>{}</acmeToken>",
        "acme_token := `{}`",
        '{{\\"acme_token\\": \\"{}\\"}}',
        "**Acme token:** {}",
        "the acme token is {}.",
    ],
)
def test_reads_assignments_in_any_syntax(line: str) -> None:
    """A random value that is assigned to a credential's name is found whatever the syntax."""
    value = key(32)
    text = line.format(value)
    assert [text[f.start : f.end] for f in scan(text)] == [value]


PASSWORD = "s3cr3t" + "Pw9"


@pytest.mark.parametrize(
    "line",
    [
        "jdbc:oracle:thin:scott/{}@//db.acme.net:1521/ORCL", "host=db port=5432 dbname=app user=bob password={}",
        "Server=db;User ID=sa;Password={};Encrypt=True;", "redis://:{}@cache.acme.net:6379/0",
        "wget --user=bob --password={} https://acme.net", "mysql -h db -u root -p{} app", "redis-cli -h c -a {} ping",
        "mongosh -u bob -p {} db", "sqlcmd -S db -U sa -P {}", "sqlplus scott/{}@ORCL", "ldapsearch -D cn=a -w {} -b x",
        "xfreerdp /u:bob /p:{} /v:h", "openssl enc -aes-256-cbc -k {}", "echo 'bob:{}' | chpasswd", "7z x a.7z -p{}",
        "echo {} | sudo -S ls", "smbclient //srv/share -U bob%{}", "ssh-keygen -N {} -f key", "zip -P {} a.zip b",
        "htpasswd -b /etc/h bob {}", "db.acme.net:5432:app:bob:{}", 'variable "db_password" {{\n  default = "{}"\n}}',
        '<entry key="db.password">{}</entry>', "<key>Password</key>\n<string>{}</string>", "ENV DB_PASSWORD {}",
        "- name: DB_PASSWORD\n  value: {}", '{{"name": "DB_PASSWORD", "value": "{}"}}', "${{DB_PASSWORD:-{}}}",
        "CREATE USER bob WITH PASSWORD '{}';", "GRANT ALL ON a.* TO 'b'@'%' IDENTIFIED BY '{}';", "requirepass {}",
        '#define WIFI_PASSWORD "{}"', 'char pass[] = "{}";', 'val password: String = "{}"', 'ftp.login("bob", "{}")',
        'let password: &str = "{}";', 'mysqli_connect("localhost", "bob", "{}", "app")', "auth=('bob', '{}')",
        'if ("{}" == password) {{', "log in as bob with password {}", "the root password was changed to {}",
        "Password → {}", "credentials are bob / {}", "la contraseña es {}", "密码是{}", "Kennwort: {}", "salasana: {}",
        "| user | password |\n|---|---|\n| bob | {} |", "username,password\nbob,{}", "snmp-server community {} RO",
    ],
)  # fmt: skip
def test_reads_passwords_in_any_syntax(line: str) -> None:
    """Commands, connection strings, configuration, SQL, code, tables and prose."""
    text = line.format(PASSWORD)
    assert PASSWORD in {text[f.start : f.end] for f in scan(text)}


@pytest.mark.parametrize(
    "line", ["API key:\n\n    {}\n", "Secret Key\n{}", "Token:\n```\n{}\n```", "Cookie: sessionid={}; a=b"]
)
def test_reads_a_key_below_its_name(line: str) -> None:
    """A heading, a code fence and a cookie's name speak for the value that follows."""
    assert len(rules_of(line.format(key(40)))) == 1


def test_private_key_without_its_frame() -> None:
    """The first bytes of a key are enough; those of a certificate are none."""
    assert rules_of("MIIE" + "pAIBAAKCAQEA" + key(200)) == ["private-key"]
    assert rules_of("MIID" + "dzCCAl+gAwIB" + key(200)) == []


def test_findings_end_with_one_for_the_rest() -> None:
    """A dump of secrets is not read to its end, and says so; nothing of it survives redaction."""
    lines = [f"token: gh{'p'}_{key(36, seed=seed)}" for seed in range(3000)]
    text = "\n".join(lines)
    assert scan(text.replace("\n", "  memlane:allow all\n"), marks=True)[-1].rule == "unread"
    findings = scan(text)
    assert 200 < len(findings) <= MOST + 1
    assert (findings[-1].rule, findings[-1].end) == ("unread", len(text))
    clean = redact(text, findings)
    assert not any(line[7:] in clean for line in lines)


def test_a_dump_behind_a_long_clean_text_is_no_clean_text() -> None:
    """What is read again has no finding in it; that the rest was not read is one."""
    lines = [f"token: gh{'p'}_{key(36, seed=seed)}" for seed in range(MOST + 100)]
    text = "nothing to see here\n" * 20_000 + "\n".join(lines)
    findings = scan(text)
    assert (findings[-1].rule, findings[-1].end) == ("unread", len(text))
    clean = redact(text, findings)
    assert not any(line[7:] in clean for line in lines)


def test_place_counts_lines_and_columns_from_one() -> None:
    """A finding says where it is, as an editor counts."""
    token = FOUND["github-token"]
    [finding] = scan(f"one\ntwo {token} three")
    assert (finding.line, finding.column, finding.start, finding.end) == (2, 5, 8, 8 + len(token))


def test_place_holds_after_letters_that_grow_in_lower_case() -> None:
    """A dotted capital I becomes two characters in lower case and shifts nothing."""
    text = "İİİ " + FOUND["password"]
    [finding] = scan(text)
    assert text[finding.start : finding.end] == "tr0ub4dor" + "&3"


def test_finding_never_shows_the_value() -> None:
    """S002-30: neither the finding nor its description repeats the value."""
    text = FOUND["github-token"]
    [finding] = scan(text)
    assert text not in repr(finding)
    assert set(Finding.__slots__) == {
        "rule", "kind", "description", "start", "end", "line", "column",
    }  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        finding.rule = "other"  # type: ignore[misc]


def test_checksum_proves_a_token_that_holds_a_placeholder_word() -> None:
    """A GitHub token with a right checksum is real, whatever letters it holds."""
    token = github_with_checksum()
    assert rules_of(token) == ["github-token"]
    assert rules_of(token[:-6] + "000000") == []


def test_redact_puts_the_rule_in_place_of_each_value() -> None:
    """The text around the values stays as it was, and the result is clean."""
    text = f"a {FOUND['github-token']} b\n{FOUND['password']}\n"
    clean = redact(text, scan(text))
    assert clean == "a [REDACTED:github-token] b\ndb_password = '[REDACTED:password]'\n"
    assert scan(clean) == []


def test_email_and_phone_only_on_request() -> None:
    """Most notes hold addresses; they are looked for when asked."""
    text = "write to bob@acme.org or call +49 30 1234567"
    assert rules_of(text) == []
    assert [f.rule for f in scan(text, email=True, phone=True)] == ["email", "phone"]
    assert {f.kind for f in scan(text, email=True, phone=True)} == {"pii"}


@pytest.mark.parametrize(
    "text", ["my ssn is 123-" + "45-6789", "SSN: 123" + "456789", "social security 123" + "456789"]
)
def test_check_pii_refuses_ssn(text: str) -> None:
    """S002-25: formatted always, nine bare digits only near the words."""
    assert check_pii(text) == ["US social security number"]


def test_numbers_keep_their_borders() -> None:
    """A card's digits inside a longer number are no card, wherever the number lies."""
    card = "4111" + "1111" * 3
    for before in ("", " " * 40, "1639512345678 " * 3):
        assert rules_of(f"{before}{card}") == ["card"]
        assert rules_of(f"{before}{card}0000000") == []
        assert rules_of(f"{before}id-{card}") == []


def test_check_pii_passes_bare_nine_digits() -> None:
    """S002-29: an order number is no SSN."""
    assert check_pii("order 123456789 shipped") == []


@pytest.mark.parametrize("sign", ["", " ", "-"])
def test_check_pii_refuses_cards(sign: str) -> None:
    """S002-26: plain, spaced and hyphenated; only with a right checksum."""
    assert check_pii("card " + sign.join(["4111", "1111", "1111", "1111"])) == ["payment card number"]
    assert check_pii("card " + sign.join(["4111", "1111", "1111", "1112"])) == []


@pytest.mark.parametrize("text", ["password: {}", "password is {}", "pwd={}", "passwd: {}", "Password = {}"])
def test_check_pii_refuses_passwords(text: str) -> None:
    """S002-27: short values count after the word."""
    assert check_pii(text.format("hunter" + "2")) == ["password"]


@pytest.mark.parametrize(
    "name", ["api_key", "apikey", "api key", "secret_key", "secret key", "access_token", "auth_token"]
)
def test_check_pii_refuses_api_keys(name: str) -> None:
    """S002-28: the seed's names followed by a short value."""
    assert len(check_pii(f"{name}: " + "sk-" + "abc123")) == 1


@pytest.mark.parametrize(
    "text", ["Use bearer " + key(20), "-----BEGIN RSA PRI" + "VATE KEY-----", "gh" + "o_" + key(36)]
)
def test_check_pii_refuses_known_prefixes(text: str) -> None:
    """S002-28: `bearer <value>`, `-----BEGIN` and known prefixes."""
    assert len(check_pii(text)) == 1


@pytest.mark.parametrize("text", ["The user prefers dark mode.", "risk-based", "The API key lives in the vault.", ""])
def test_check_pii_passes_harmless_text(text: str) -> None:
    """S002-29: harmless text gives an empty list."""
    assert check_pii(text) == []


@pytest.mark.parametrize(
    "text",
    ["password: letmein", "wifi password: blueberry", "password: correct horse battery staple", "passwd: x9ss",
     "secret_key: abcdef12", "auth_token: abc123", "access_token: abc", "api_key: abc", "Use bearer eyJhbGciOi"],
)  # fmt: skip
def test_check_pii_refuses_any_word_after_a_credentials_name(text: str) -> None:
    """S002-27, S002-28: what the vault holds is in every prompt."""
    assert len(check_pii(text)) == 1


@pytest.mark.parametrize(
    "text",
    ["password: see the team's vault", "Password: stored in 1Password", "api key: from the environment",
     "password: required", "password: $DB_PASSWORD", "password: <yours>", "The password: it rotates weekly"],
)  # fmt: skip
def test_check_pii_passes_where_a_credential_is(text: str) -> None:
    """S002-29"""
    assert check_pii(text) == []


def test_check_pii_never_repeats_the_value() -> None:
    """S002-30: the messages name the class only."""
    assert "hunter2" not in " ".join(check_pii("password: " + "hunter2"))


@given(st.text(max_size=400))
def test_any_text_can_be_scanned_and_redacted(text: str) -> None:
    """Findings lie in order inside the text and do not overlap."""
    findings = scan(text, email=True, phone=True)
    places = [place for finding in findings for place in (finding.start, finding.end)]
    assert places == sorted(places)
    assert all(f.start < f.end <= len(text) for f in findings)
    assert redact(text, []) == text


@given(st.lists(st.sampled_from(sorted(FOUND.values())), min_size=1, max_size=5), st.text("ab \n", max_size=20))
def test_redacted_text_is_clean(secrets: list[str], filler: str) -> None:
    """Whatever is found is gone after redaction."""
    text = f"\n{filler}\n".join(secrets)
    findings = scan(text)
    clean = redact(text, findings)
    assert all(text[f.start : f.end] not in clean for f in findings if f.end - f.start > 12)


FILLERS = ["", "a", "a1B2c3D4e5F6g7H8", " ", "=", ":", ".", '"', "-", "/", "\n", " a = "]


@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda n: f"{RULES[n].id}-{n}")
def test_rules_are_linear(number: int) -> None:
    """100 KB made of a rule's own keyword costs it CPU time that only linear work explains."""
    rule = RULES[number]
    words = (rule.keywords or ("12",))[:2]
    units = [word + filler for word in (*words, words[0].upper()) for filler in FILLERS]
    began = time.process_time()
    for unit in units:
        list(_matches(rule, unit * (100_000 // len(units) // len(unit) + 1)))
    long = max((unit for unit in units), key=len)
    list(_matches(rule, long * (100_000 // len(long))))
    list(_matches(rule, words[0] + "a1" * 50_000))
    assert time.process_time() - began < 8  # tenths of a second; the bound is for slow machines


HOSTILE = [
    "key", "token=", "password", "secret: ", "key a1b2c3d4e5f6g7h8 ", "key=" + "a1B2c3D4e5F6g7H8i9J0 ", "ghp_",
    "user=x password=", "://a:b", "://u:p@", "eyJa.", "1234 5678 9012 3456 ", "123-" + "45-6789 ", "sk-",
    "DE8937040044" + "0532013000 ", "key" + "." * 40, 'key="', "-----BEGIN PRIVATE KEY-----\n", "memlane:allow x ",
    "a1b2c3d4e5f6g7h8:", "PRIVATE KEY", "--password " + "a1b2c3 ", 'secret="' + "1!" * 250 + '" ',
    "password=$" + "1" * 300 + " ", "user=a;password=b;", "| password |\n|--|\n", "a,password\n", "cookie: ",
    "mysql -p", "identified by ", "name: password\nvalue: ", "<key>password</key>\n<string>", "```\nkey:\n",
    'password" {', "login( ", "create user password ", '"a" == ',
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_scan_is_linear_in_hostile_text(unit: str) -> None:
    """Four times the text costs about four times the work, not sixteen."""
    small, large = (unit * (size // len(unit)) for size in (25_000, 100_000))

    def spent(text: str) -> float:
        began = time.process_time()
        scan(text)
        return time.process_time() - began

    scan(unit * 40)  # compiles the patterns that it needs
    least = min(spent(small), spent(small))
    assert any(spent(large) < 10 * least + 0.1 for _ in range(2))  # the second time only if something else held it up


def test_one_word_of_a_megabyte() -> None:
    """A long run without a blank is no burden."""
    began = time.process_time()
    scan("a1B2" * 250_000)
    assert time.process_time() - began < 8


def test_import_compiles_nothing_heavy() -> None:
    """The patterns wait for a text that needs them."""
    code = (
        "import sys; import memlane.gate.secrets.scanner as s; from memlane.gate.secrets import scan;"
        "assert not s._compiled.cache_info().currsize;"
        "assert not {'json', 'hashlib', 'base64', 'zlib'} & sys.modules.keys();"
        "scan('Plain words only.'); assert s._compiled.cache_info().currsize < 5"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_exports_are_sorted_and_complete() -> None:
    """The public names are the ones that `__all__` lists."""
    assert secrets.__all__ == ["RULES", "Finding", "Rule", "check_pii", "redact", "scan"]


def test_rule_table_is_well_formed() -> None:
    """Ids are slugs, keywords are lower-case, and every description is short."""
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9-]+", rule.id)
        assert all(keyword == keyword.lower() for keyword in rule.keywords)
        assert len(rule.description) < 50
        assert rule.kind in ("secret", "pii")


@pytest.mark.parametrize("prefix", ["AKIA", "ASIA"])
def test_an_aws_key_id_needs_no_digit(prefix: str) -> None:
    assert [finding.rule for finding in scan(f"The id {prefix}QXEGRZKYBNWVXHTD, of the deploy.")] == ["aws-access-key"]


@pytest.mark.parametrize("length", range(54, 80))
def test_a_key_in_base64_that_is_cut_off_is_scanned(length: int) -> None:
    """One such line would else cost the rest of a session's messages."""
    assert isinstance(scan("LS0tLS1CRUdJTi" + "A" * (length - 14)), list)


@given(st.sampled_from(sorted(FOUND)), st.data())
def test_whatever_is_cut_off_or_damaged_is_scanned(rule: str, data: st.DataObject) -> None:
    text = FOUND[rule]
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    noise = data.draw(st.text("=+/._-:%\"'\\\n\u200b\u00a0é9aA", max_size=8))
    damaged = text[:start] + noise + text[end:]
    assert isinstance(redact(damaged, scan(damaged)), str)
    wrapped = base64.b64encode(damaged.encode()).decode()
    assert isinstance(scan(wrapped[: len(wrapped) - 1]), list)


def test_a_check_that_fails_by_itself_lets_nothing_pass() -> None:
    from memlane.gate.secrets.rule import Rule

    def broken(value: str) -> bool:
        raise RuntimeError(value)

    rule = Rule("mine", "My key", ("mine-",), r"mine-\w{8}", check=broken, proof=broken)
    assert [span[2] for span in _matches(rule, "mine-ab12cd34", 0, 13)] == ["mine"]
