"""Short texts in which no rule of the scanner can find anything: told without loading a rule.

To load the scanner takes as long as to start Python. Most prompts, and most of what a command says, are a few words
that wake no rule. Whatever is in doubt is not plain, and is scanned.
"""

from __future__ import annotations

from memlane.core.invisible import unusual
from memlane.core.patterns import lazily

LONG, PIECE = 14, 10  # characters of a word that may be a key, or a part of one that goes on in another line
TELLS_KEY = lazily(r"[0-9]|A(?:KIA|SIA|BIA|CCA)[A-Z]{16}(?![A-Za-z0-9])")  # one of these is in every key
_DIGITS, _AS_DIGITS = b"0000000", bytes.maketrans(b"123456789", b"000000000")
_SHORT = 2_000  # characters; a longer text is seldom plain, and need not be read twice
# One of these is in every keyword of `secrets.keywords.anywhere` that is ASCII; a test makes sure of it.
WAKING = (
    " -a ", " -k ", " -n ", " -p", " -w", "!=", '"d"', '"oct', "-----begin", "-server ", "-signature=", ".sid=",
    "/p:", ":*:", ":5432:", "==", "@", "]:", "_session=", "adgangskode", "admin", "api-avain", "api-nyckel",
    "api-sleutel", "api_org_", "aqaaabaaa", "auth", "backup code", "backup_code", "basic", "bearer", "chave api",
    "chave de api", "chiave api", "clave", "clef api", "connect(", "contrase", "convertto-securestring", "cookie:",
    "createhmac(", "cred", "curl ", "directoryentry", "ection(", "eed phrase", "eed words", "eed_phrase", "enable ",
    "flyv1", "hash_hmac(", "heslo", "hf_", "hmac.new(", "http ", "https ", "identifiants", "identified ",
    "istrator/", "istrator:", "jwt", "kennwort", "key", "klucz api", "log in", "logged in", "login", "mdp",
    "mnemonic", "national insurance", "net use", "net.exe", "nino", "ntials(", "oracle:", "parola", "pass", "pdo(",
    "pin code", "pin for ", "pin is", "pin of ", "pin to ", "pin vom ", "pin von ", "pin:", "pin=", "postgres:",
    "private", "proceed to installation", "psexec", "psk", "pswd", "pw", "rabbitmqctl", "recovery code",
    "recovery phrase", "recovery_code", "root/", "root:", "salasana", "salt", "secret", "seed", "senha", "sessid=",
    "sessionid=", "sign in", "signed in ", "smbclient", "snmp community", "snmp-server", "sqlplus", "ssh2 encrypted",
    "sudo -s", "superuser", "token", "unlock code", "unseal", "username ", "viserver", "wachtwoord", "wget ", "wifi",
    "wlan", "zugangsdaten",
)  # fmt: skip
_TIME = lazily(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[+-][0-9]{2}:[0-9]{2})")
_UUID = lazily(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # by itself: with a name before it, it may be a key
_NEVER = "%\\&|"  # what begins an escape, and what stands between the cells of a table
_QUOTES = str.maketrans('"`', "''")


def is_plain(text: str) -> bool:
    """Whether it is certain at a glance that `secrets.scan` finds nothing in a text, phone numbers aside."""
    if len(text) > _SHORT or not text.isascii() or unusual(text):
        return False
    if _TIME.fullmatch(text) or (_UUID.fullmatch(text) and not has_number(text)):
        return True
    lowered = text.lower()
    if any(sign in text for sign in _NEVER) or any(word in lowered for word in WAKING) or has_number(text):
        return False
    if any(len(word) >= PIECE and TELLS_KEY.search(word) for word in text.split()):
        return False
    _, *parts = text.translate(_QUOTES).split("'")
    return all(part[:1].isalpha() for part in parts[:-1])  # or else two strings may be joined there; not in "don't"


def has_number(text: str) -> bool:
    """Whether a text has digits enough in a row for a number of a person, with or without signs between them."""
    return _DIGITS in text.encode(errors="surrogatepass").translate(_AS_DIGITS, b" .-")
