"""What a name says of the value after it: a password, a secret, perhaps a key, or nothing.

A name is judged by its last words. `CACHE_PASSWORD` ends in a password, `password_hint` in a hint, and what else a
name is made of says nothing. Pure functions over one name.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from memlane.gate.secrets.rule import exact

# "Password" in other languages, as the beginning of a word.
FOREIGN = (
    "contrase", "wachtwoord", "senha", "hasło", "парол", "密码", "密碼", "パスワード", "비밀번호", "kennwort",
    "lösenord", "adgangskode", "heslo", "şifre", "parola", "salasana", "jelszó", "κωδικ", "clave", "mật khẩu", "סיסמ",
    "كلمة المرور", "รหัสผ่าน",
)  # fmt: skip
_UNSPACED = tuple(word for word in FOREIGN if not word[0].isascii())
# "API key" in other languages, and "login".
_API_KEY = (
    "api-schlüssel", "clé api", "clé d'api", "clef api", "clave api", "clave de api", "chiave api", "chave api",
    "chave de api", "klucz api", "klíč api", "ключ api", "api-ключ", "api ключ", "apiキー", "api キー", "api 密钥",
    "api密钥", "api-nyckel", "api-sleutel", "api-nøgle", "api-avain", "api 키",
)  # fmt: skip
_LOGIN = ("admin", "superuser", "login", "log in", "logged in", "sign in", "zugangsdaten", "identifiants", "логин")
# What every name of a credential holds.
WORDS = (
    "pass", "pw", "pswd", "mdp", "bearer", "secret", "token", "key", "auth", "cred", "psk", "salt", "snmp community",
    "seed", *FOREIGN, *_API_KEY, *_LOGIN,
)  # fmt: skip
PLACES = {word: place for place, word in enumerate(WORDS)}

# After a login alone stands no password; near one may stand some.
PASSWORD, SECRET, KEY, LOGIN = "password", "secret", "key", "login"

_ENDS = (
    (PASSWORD, r"pass(?:w(?:or)?d|wort|phrase|code|wrd|wo?rt|ord)?s?|pwds?|pws?|pswd|psk|mdp|masterauth|de passe"),
    (PASSWORD, "snmp community"),
    (LOGIN, r"admin|superuser|login|log(?:ged)? in|sign in|zugangsdaten|identifiants?|credenziali|credenci(?:ale|ai)s"),
    (LOGIN, "логин"),
    (SECRET, "|".join(word.replace("-", " ").replace("'", " ") for word in _API_KEY)),
    (SECRET, r"secrets?|tokens?|bearer|cred(?:ential)?s?|api[ ]?keys?"),
    # A key of what only one's own programs may open.
    (SECRET, (
        r"(?:access|auth|authentication|private|client|account|app|application|consumer|licen[cs]e|encrypt(?:ion)?"
        r"|signing|master|subscription|service|session|webhook|shared|server|admin|root|deploy|rest|write|read|security"
        r"|project|integration|user|sdk|storage|secret|aes|hmac|jwt|bot|test|live|prod(?:uction)?|personal|vapid"
        r"|ingest|ingestion|management|tenant|org|partner|secure|logged in|nonce|crypto?|oauth|basic|unseal)[ ]?keys?"
        r"|(?:auth|logged in|nonce|password|security|crypt) salt"
    )),
    (SECRET, r"(?:app ?role |vault )?secret id|(?:totp|otp|2 ?fa|mfa) se{2}d"),
    (KEY, r"keys?|auth"),
)  # fmt: skip
# Keys and tokens that anybody may see, or that are no more than a place in a list.
_OPEN = (
    r"(?:public|pub|primary|foreign|partition|sort|cache|idempotency|hot|object|s ?3|file|site|map|row|range|hash"
    r"|routing|publishable|translation|i ?18 ?n|message|dict|json|lookup|composite|unique|candidate|registry|config"
    r"|query|issue|group|index|column|input|output|restore|arrow|shift|press|any|each|every|this|that|same"
    r"|turn|mon|tur|hoc|don|joc|whis) ?keys?"
    r"|(?:csrf|xsrf|next|page|continuation|cancel+ation|sync|max|min|total|prompt|completion|input|output|n|num"
    r"|json web|public|per|of|cursor|start|end|stop|eos|bos|pad|mask|unk|special|design|governance|utility|native"
    r"|erc ?20) ?tokens?"
    r"|(?:com|by|sur|tres|over|under|encom|boarding|first|second|single|one|two|multi|each|every|low|high"
    r"|band|proxy|fastcgi|uwsgi|scgi|grpc|memcached) ?pass(?:es)?"
    r"|sa ?cred|dead sea salt|no ?passw(?:or)?d"
)
# What the last word of each of these ends in: most words need no closer look.
_TAILS = (
    "pass", "passs", "passes", "passe", "swd", "swds", "pwd", "pwds", "pw", "pws", "ord", "ords", "ort", "orts", "wrt",
    "wrts", "wrd", "wrds", "phrase", "phrases", "code", "codes", "psk", "mdp", "auth", "unity", "admin", "user", "in",
    "daten", "fiant", "fiants", "ziali", "iales", "iais", "логин", "ssel", "api", "ключ", "キー", "密钥", "ckel",
    "utel", "øgle", "vain", "키", "ecret", "ecrets", "token", "tokens", "earer", "cred", "creds", "ential", "entials",
    "key", "keys", "salt", "id", "seed",
)  # fmt: skip
# After a credential's word these say that the value is something about it.
_ABOUT = frozenset(
    """
    hint hints count counts name names id ids less hash hashes hashed hashing digest checksum file files filename path
    paths dir directory folder url uri urls link links endpoint endpoints method methods type types typ kind mode modes
    policy policies field fields form forms reset input label labels length len size sizes limit limits expiry expires
    expired expiration expire ttl lifetime age date time timestamp manager managers store stores storage provider
    providers server servers service host hosts port address contract mint symbol usage usages budget version versions
    ref refs reference references arn mount engine prompt prompts placeholder title message messages error errors status
    state enabled disabled required optional rule rules min max strength meter generator validator validation encoder
    encryptor hasher helper handler callback cmd command check checker column columns table header headers param
    parameter parameters params prefix suffix format algorithm alg scheme schemes scope scopes realm plugin db database
    source sources user users username domain audience issuer list set map index order bits pair pairs alias aliases
    fingerprint tooltip advice button icon view component page screen dialog modal description docs help info note
    notes template function func fn class interface model schema exception middleware guard factory builder config
    settings options setting option property properties attribute stdin env variable variables var vars code codes
    board word words frame frames press up down stroke strokes binding bindings space spaces sha md h integrity commit
    uuid guid alphabet charset chars encoding encoder decoder parser izer izers ization izing izes ized iser
    rotation rotate encryption management protected protection change changes changed update updates
    entry entries item items
    object objects instance based flow flows grant grants request requests response responses usage lookup
    success failure failed successfully matching match mismatch attempts retries owner holder group groups
    ring chain vault
    point points level levels control log logs agent client clients authority ority point signature verification
    balance supply price amount cost costs rate rates per window stream streams sequence vocabulary vocab embedding
    embeddings position positions ion ive age enger port over through
    """.split()
)
# These stand after a credential's name and change nothing.
_BESIDE = frozenset(
    """
    value val values string str text plain plaintext cleartext raw b64 base64 hex prod production dev development
    staging
    stage test testing qa live local sandbox old new current previous primary secondary default backup main base data
    confirmation confirm repeat again override bytes a b c d x y
    """.split()
)
# These name a credential only at the end of a name: "pass through", "pw-cat", "key to success".
_LAST = frozenset("pass pw key keys auth cred salt clave parola".split())
# A program's words for people have these in their names.
_CAPTIONS = frozenset(
    "label labels title tooltip forgot mandatory invalid missing wrong enter placeholder button btn msg message "
    "error hint show hide caption heading text description warning confirm advice".split()
)
# Where a word ends and the next begins in `keyStorePassword2`.
_SEAMS = r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"


@cache
def _ends() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(rf"(?:.*[ ])?(?:\w*?)(?:{form})")) for kind, form in _ENDS)


@cache
def _open() -> re.Pattern[str]:
    return re.compile(rf"(?:.*[ ])?(?:{_OPEN})")


def words_of(name: str) -> list[str]:
    """The words of a name in any spelling: `keyStorePassword`, `key-store-password`, `KEYSTORE_PASSWORD`."""
    spaced = exact(_SEAMS).sub(" ", name)
    return exact(r"[\W_]+").split(spaced.lower().strip(" \t_-.:"))


@lru_cache(4096)
def kind_of(name: str) -> str:
    """PASSWORD, SECRET or KEY by the last words of a name; "" for one that names no credential.

    Words that follow the credential's own and say nothing else of it are taken for its place: "password for the NAS".
    """
    words = words_of(name)
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _BESIDE or not words[-1]):
        words.pop()
    for end in range(len(words), 0, -1):
        some = words[max(0, end - 3) : end]
        if kind := _ends_in(" ".join(some)) if some[-1].endswith(_TAILS) else _foreign(some):
            beside = end < len(words) and words[end - 1] in _LAST
            about = any(word in _ABOUT or word.removesuffix("s") in _ABOUT for word in words[end:])
            return "" if beside or kind == "open" or about else kind
    return ""


def _ends_in(name: str) -> str:
    if _open().fullmatch(name):
        return "open"
    for kind, form in _ends():
        if form.fullmatch(name):
            return kind
    return _foreign(name.split(" "))


def _foreign(words: list[str]) -> str:
    if words[-1].startswith(FOREIGN):
        return PASSWORD
    # Scripts without blanks between words: the word may begin anywhere.
    name = "" if words[-1].isascii() else " ".join(words)
    return PASSWORD if name and (name.endswith("mật khẩu") or any(word in name for word in _UNSPACED)) else ""


def is_caption(name: str) -> bool:
    """True for a name of what a program shows about a password: `LABEL_PASSWORD`, `forgotPassword`."""
    return not _CAPTIONS.isdisjoint(words_of(name))
