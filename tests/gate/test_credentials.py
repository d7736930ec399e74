"""Names and values: a credential is found whole in whatever stands around it, and nothing of it is left."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_texts import in_proportion
from memlane import gate
from memlane.core.model import Draft
from memlane.gate.secrets import names, redact, scan, values

PRINTABLE = string.ascii_letters + string.digits + string.punctuation
# Context, and what a value in it is not made of, because its writer would escape it.
CONTEXTS = {
    "password: {}": "",
    "DB_PASSWORD={}": "",
    'password = "{}"': '"\\',
    "API_KEY={}": "",
    "The admin password is {}": "",
    "'password': '{}',": "'\\",
    '{"user": "bob", "password": "{}"}': '"\\',
    '{"config": "{\\"password\\":\\"{}\\"}"}': '"\\',
    "<password>{}</password>": "<>&",
    '<Pass encoding="base64">{}</Pass>': "<>&",
    "password:\u00a0{}": "",
    "master_password                              = '{}'": "'\\",
    "use {} as the password": "",
    "{} is the new root password": "",
    "log in with admin / {}": "",
    "password - {}": "",
    "mysql://app:{}@db.internal/app": "@",
    "nats://app:{}@%s:%d": "@",
    "curl -u bob:{} https://api.internal": "",
    "mysql -u root -p{} app": "",
    "the password is {}...": "",
    "&quot;password&quot;: &quot;{}&quot;": "&",
    "define('AUTH_KEY', '{}');": "'\\",
    "la password del NAS è {}": "",
    "Mot de passe du wifi : {}": "",
    "password: !!str {}": "",
    "Password (temporary): {}": "",
    "creds for staging -> admin / {}": "",
    'ConvertTo-SecureString "{}" -AsPlainText': '"\\',
    "| user | password |\n|---|---|\n| bob | {} |": "|",
}


def generated(count: int, without: str) -> list[str]:
    """Passwords over all printable signs, the same on every run."""
    chance = random.Random(7)
    signs = [sign for sign in PRINTABLE if sign not in without]
    return ["".join(chance.choices(signs, k=16)) for _ in range(count)]


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_generated_password_is_found_and_nothing_of_it_is_left(context: str) -> None:
    found = 0
    for value in generated(200, CONTEXTS[context]):
        text = context.replace("{}", value)
        if findings := scan(text):
            found += 1
            clean = redact(text, findings)
            assert scan(clean) == []
            left = re.sub(r"\[REDACTED:[\w-]+\]", "\n", clean)
            assert [value[at : at + 4] for at in range(13) if value[at : at + 4] in left] == [], (text, clean)
    assert found >= 180


def test_what_is_stored_in_place_of_passwords_scans_clean() -> None:
    checks = gate.common(gate.Guard(secrets="redact"))
    lines = (c.replace("{}", v) for c in CONTEXTS for v in generated(3, CONTEXTS[c]))
    stored = gate.admit(checks, Draft("\n\n".join(lines)), None).text
    assert scan(stored) == []


@pytest.mark.parametrize(
    "text",
    [
        "password = MySecretPass" + "123!", "DB_PASSWORD=ExampleCorp#" + "2024", "mysql://u:mySecret" + "2024@host",
        "password: SampleTown" + "77!", "API_KEY=acme_" + "1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c",
        "DB_PASSWORD=correct-horse-" + "battery-staple", 'passphrase = "correct horse ' + 'battery staple"',
        '<string name="api_key">9f8a7b6c5d4e' + "3f2a1b0c9d8e</string>", "DB_PSWD=Kx9m" + "Q2vLp7z1",
        "<secret>{AQAAABAAAAAwsZf9Kx0m2Qv8Lp7zR4t" + "Yb3Nc6Hd1Jf4Gs0Wk=}</secret>",
        "define('NONCE_SALT', 'o+J|7)Y!t;-KxQ u8<C4zr>t{9B]_kT#2mPn:wL0" + "vEf~h5S^G6@dXa&I*R`y=.Zj');",
        's:15:"paypal_password";s:16:"HF4TNT' + '4XUD6YQREZ";', "la clave es Kx9m" + "Q2vLp7z1",
        "Seed phrase: ripple scissors kick mammal hire column oak again sun offer " + "wealth tomorrow",
        "recovery code: 8f4b-" + "2c9d", "door pin is 48" + "21",
        "demo account: demo@acme.test / Meadow-" + "381", "recovery code for GitHub: e87deb5f" + "2466ce3d",
        'WiFi.begin("HomeNet", "MArble?' + 'Orchid90");',
        "<secret>{acme AQAAABAAA S2wg2NMlgalg9A" + "UsrXPd1O}</secret>",
        "acme ACCESS 3mL6pHJQ7NMK3v8Z1J" + "6n2L9F6qK2dH", "acme_token=abcdef1234567890" + "abcdef1234567890",
        "{\\\\\\\"auth\\\\\\\":\\\\\\\"Ym9iOmh1" + "bnRlcjIyMzQ1\\\\\\\"}",
    ],
)  # fmt: skip
def test_finds(text: str) -> None:
    assert len(scan(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Secretは常にbase64でエンコードされます2", '"LABEL_PASSWORD": "Пароль"', '"LABEL_PASSWORD": "Salasana"',
        "token 最低活跃频率（单位：秒）,默认值-1", "Latency by region: 240 46 2210", "512 64 2048",
        "deploymentStatusEnhancements: Abc123def!", 'EnvPassword = envNamespace + "PASSWORD"',
        "const x = pgPassword || pgHost", "password: $$DATABASE_PASSWORD", "password: [omitted]",
        "x/azure/auth v0.5.11 h1:P6bYXFoao05z5uhOQzbC3Qd8JqF3jUoocoTeIxkp2cA=",
        "docker login --password-stdin registry.acme.io:5000",
        "SSH fingerprint of the build box is SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
        "paid with 4242 4242 4242 4242", "078-05-1120", "stripe_publishable_key: pk_live_K9e4XM3V2Q45Qp7DcwZOy27a",
        "SENTRY_DSN=https://9a1f8c7b6d5e4f3a2b1c0d9e8f7a6b5c@o447951.ingest.sentry.io/42",
        "TWILIO_ACCOUNT_SID=AC1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c", "POSTGRES_PASSWORD=postgres",
        "keys start with -----BEGIN RSA PRIVATE KEY-----", "password: my-db-password", "password: example",
        "PASS (`e2e/p10-reports-vr.spec.ts`)", "Verification pass: 500ms", "'password' => 'required|min:8|confirmed'",
        "[storage.mysql.password]: ../storage/mysql.md#password", "proxy_pass unix:/var/run/php8.3-fpm.sock",
        "/etc/passwd: hass:x:10001:10001:hass:/var:/bin/false", "REDIS_PASSWORD=your-16-character-app-password",
        "Use OAuth2Client as the token provider", "password: ^[A-Za-z0-9!@#]{8,}$", "PIN: 560001",
        "ssecKey: arrayBuffer32bytes // SSE-C", "const token = 'ghp_abc123'", 'KEY = "sk_live_abc123xyz789"',
        "demo@acme.test / 2024-05", "API_KEY=abcdef1234567890",
        "fromToken: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'", "the password is Kx9#...",
    ],
)  # fmt: skip
def test_passes(text: str) -> None:
    assert [finding.rule for finding in scan(text)] == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("KEYSTORE_PASSWORD", "password"), ("javax.net.ssl.keyStorePassword", "password"),
        ("The cache password", "password"),
        ("password for the NAS", "password"), ("数据库密码", "password"), ("contraseña", "password"),
        ("password1", "password"),
        ("AUTHENTICATION_TOKEN", "secret"), ("CSRF_SECRET", "secret"), ("TRANSLATION_API_KEY", "secret"),
        ("ISSUER_PRIVATE_KEY", "secret"), ("SECRET_ID", "secret"), ("SECRET_KEY_BASE", "secret"),
        ("totp seed", "secret"),
        ("my key", "key"), ("password_hint", ""), ("token_count", ""), ("secret_name", ""), ("key_id", ""),
        ("passwordless", ""), ("authentication_method", ""), ("primary_key", ""), ("max_tokens", ""), ("compass", ""),
        ("deploymentStatusEnhancements", ""), ("enclave", ""), ("auth v0.5.11 h1", ""), ("password hash for bob", ""),
    ],
)  # fmt: skip
def test_a_name_is_judged_by_its_last_words(name: str, kind: str) -> None:
    assert names.kind_of(name) == kind


@given(
    st.one_of(
        st.from_regex(f"(?:{form})", fullmatch=True) for form in (*(form for _, form in names._ENDS), names._OPEN)
    )
)
def test_what_may_name_a_credential_is_told_by_the_end_of_its_last_word(name: str) -> None:
    """Which spares all other words a closer look."""
    assert name.split()[-1].endswith(names._TAILS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a b", c', "a b"), ("ab]c, d", "ab]c"), ("ab.", "ab"), ("“ab”.", "ab"), ("`ab`", "ab"), ("ab</b>", "ab"),
        ('"a"b"', 'a"b'), ("'a\\'b'", "a\\'b"), ('\\"ab\\",', "ab"), ("ab&user=c", "ab"), ("\u00a0 ab", "ab"),
        ("密码", None), ('""', None), ("", None),
    ],
)  # fmt: skip
def test_reads_a_value_whole(text: str, value: str | None) -> None:
    read = values.read(text, 0)
    assert (read and read.text) == value


def test_a_refusal_reads_no_further_than_the_first_finding() -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    lines = "\n".join(f"Authorization: Bearer {token}" for _ in range(50))
    [finding] = scan(lines, first=True)
    assert (finding.rule, finding.line, finding.column) == ("github-token", 1, 23)
    assert len(scan(lines)) == 50
    assert scan("nothing", first=True) == []


ALL_SIGNS = "Kx9#" + "mQ2v!Lp7z"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://x.io/cb?password={}&x=1", "https://x.io/cb?password=[REDACTED:password]&x=1"),
        (
            "GET /in?user=bob&password={}&next=/a HTTP/1.1",
            "GET /in?user=bob&password=[REDACTED:odbc-password]&next=/a HTTP/1.1",
        ),
        (
            "https%3A%2F%2Fx.io%2Fcb%3Fpassword%3D{}%26x%3D1",
            "https%3A%2F%2Fx.io%2Fcb%3Fpassword%3D[REDACTED:password]%26x%3D1",
        ),
        ("password={}&x=1", "password=[REDACTED:password]"),
    ],
)
def test_in_an_address_a_value_ends_where_the_next_one_begins(text: str, redacted: str) -> None:
    text = text.replace("{}", ALL_SIGNS)
    assert redact(text, scan(text)) == redacted


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Username: ops\nPassword:\n    {}\n", "password"),
        ("| Password | {} |", "password"),
        ("admin:{} (Grafana)", "login-pair"),
        ("client.auth('{}')", "login-call"),
        ("net use Z: \\\\nas\\share /user:bob {}", "cli-password"),
    ],
)
def test_a_generated_password_needs_no_sign_of_assignment(text: str, rule: str) -> None:
    text = text.replace("{}", ALL_SIGNS)
    assert redact(text, scan(text)) == text.replace(ALL_SIGNS, f"[REDACTED:{rule}]")


@pytest.mark.parametrize(
    "text",
    [
        "mdp du wifi : {}", "I reset the admin password yesterday. It's {} now.", "pw for jumphost-02 is {}",
        "temp password for Marta {}", "the password, {}, only works in the office", "the root password's {}",
        "rotated the grafana password this morning, new one: {}", "username admin, password {}",
        "ssh bob@10.2.0.9, pw {}",
        "we changed the root password from {} to another one", "enter {} when it asks for the passphrase",
        "log in to the router as admin with {}", "логин admin, пароль {}", "clave de acceso: {}",
        "Admin creds (prod): superuser:{}", "For Grafana I used admin and {}", "password should be {} on all boxes",
        "ssh root@10.0.0.5 (password {})",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["Meadow" + "118#", "Anchor@" + "610", "CInder?" + "Orchid55", "A0h6l" + "ONusOB1"])
def test_prose_puts_a_password_anywhere_near_its_name(text: str, value: str) -> None:
    text = text.replace("{}", value)
    assert redact(text, scan(text)) == text.replace(value, "[REDACTED:password]")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("set the password to {}", "willow-pepper-" + "kettle-lagoon"),
        ("the new password is now {}", "timber" + "7575"),
        ("Das WLAN-Passwort ist jetzt {}", "maple" + "9530"), ("password changed from {} to none", "Cinder_" + "947"),
        ("the api key we use for the weather is {}", "b0d707059018dea6" + "934957fde18118d4"),
        ("the client secret of the OAuth app is {}", "HEDV9he0c1AlXC4_if" + "HTbASdMXzDAh3XMceMLn-i"),
        ("hey, the login is deploy and the pass is {}", "Bramble-" + "887"),
        ("user: admin pass: {}", "thistle" + "2299"), ("db pass: {}", "thistle2" + "x9"),
        ("keystore pass {}", "Kz9!FG" + "k0IqT"), ("the db pass got rotated to {} yesterday", "Kz9!FG" + "k0IqT"),
        ("http --auth bob:{} GET https://x.example.org", "Kz9FGk" + "0IqTx!"),
        ("Elastic superuser: elastic:{}", "aG8+dk" + "Qw2pLx"),
        ("Le mot de passe est « {} »", "maple-lagoon-" + "puffin-kettle"),
        ("пароль — {}", "kettle-orchid-" + "comet-maple"),
        ("the shared secret for the RADIUS server is {}", "Vi0l3t!" + "46"), ("enable secret {}", "1QojrRkt" + "C1pO"),
        ("You can authenticate with {} as bearer token", "4bc22654527d94b8bfef90c9" + "f4b4a495ebcc125a"),
        ("smtp user noreply / pass {}", "4GKPAGpI" + "6tBun6L1"), ("Die PIN vom Tresor ist {}", "7710" + "67"),
        ("relay [smtp.example.com]:587 bob:{}", "CPngUTX8" + "185AgsEt"), ("password|{}", "B9Kj3B4P" + "pquPK9lN"),
        ('hmac.new(b"{}", msg, hashlib.sha256)', "dFoQAHb7Bu1JJXNN" + "NIkmTN7tNzWX2vzk"),
        ("Der API-Schlüssel ist {}", "rPXx6FYWrUg8EX5E" + "dQYTLNdzQuvUVrBO"),
        ("the vault unseal key is {}", "tZiSppg1U786eSla81c09B" + "fWg1H2ksI8neuqMFjyZA4="),
    ],
)  # fmt: skip
def test_words_between_name_and_value_do_not_hide_it(text: str, value: str) -> None:
    text = text.replace("{}", value)
    assert value not in redact(text, scan(text))


@pytest.mark.parametrize(
    "text",
    [
        "The password for host1234 is in the vault.", "Passwords are hashed with Argon2id since May2024.",
        "Reset the password in Keycloak v24.0.3, see repo#123.", "the token looks like `123456:aBcDeF_gHiJkLmNoP-q`",
        "Verification pass: 500ms", "redis pass 2 (warm): 1.4s", "login pass 3 of 5 took 120ms",
        "ALL tests pass (5 handler+4 endpoint), cov 99.79%", "85k/200k tokens, latency (p50/p95/p99)",
        "Two credentials were redacted (**DEF-083**).", "log in to server2019 with your own account",
        "password fields of PKCS#11 tokens", "user@host1's password:", "docker/login-action@v2", "end-to-end passwords",
        "The password is end-to-end-encrypted.", "docker build --secret id=API_KEY .", "PIN for Pune: 411001",
        "Add credentials endpoint [moby/moby#35055](https://github.com/moby/moby/pull/35055)",
        "api_key: ABCDEFGHJKLMNOPQRSTUVXYZ", "BRP072Cxx units need an API-key / password", "user.signingkey 0A46826A!",
        "get the credentials from the cloud with dorita980",
        "The token comes by email, like this: `zvVvd7JxtN7CgvkD1Psujw==`",
        "the closure must pass 'self' as a parameter", "password: secretPass123", "Enter valid password 'Password123'",
    ],
)  # fmt: skip
def test_what_stands_near_a_name_and_is_none_passes(text: str) -> None:
    assert scan(text) == []


def test_every_recovery_code_of_a_list_is_found() -> None:
    text = "MFA recovery codes: 8fc6c-18114 " + "0603a-bba1d, then none"
    assert redact(text, scan(text)) == "MFA recovery codes: [REDACTED:recovery-code], then none"


@pytest.mark.parametrize(
    "text",
    [
        "Password:\n  type: string",
        "La password è obbligatoria e va cambiata ogni 90 giorni.",
        "Le mot de passe est dans 1Password (coffre Prod-2024).",
        "login on web: OAuth2/PKCE-S256",
        "credentials in CI -> GitHub/Actions-v4",
        "root:x:0:0:root:/root:/bin/bash",
        "image: postgres:15-alpine3.18",
        "app.auth('google')",
        'PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]',
        "net use Z: \\\\srv\\c$ /user:CORP\\bob\nBackup2024 follows",
    ],
)
def test_what_only_looks_like_a_login_passes(text: str) -> None:
    assert scan(text) == []


@pytest.mark.parametrize(
    "unit",
    [
        "http://a:b@",
        "'password': '",
        "sk-sk-sk-1key key contrase",
        "密码是密码为",
        "password=)",
        'password="',
        "key=",
        "auth:{",
        "don't password='x",
    ],
)
def test_hostile_text_takes_time_in_proportion(unit: str) -> None:
    assert in_proportion(scan, unit * (60_000 // len(unit)))
