"""`name = value` in any syntax: env, YAML, JSON, TOML, code, flags, prose ("the password is …").

The name must be one of a credential and the value must look like one. Names are found with plain string search, and
only then does a pattern anchored there read the rest: prose without such names costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlane.gate.secrets import decoys
from memlane.gate.secrets.decoys import entropy, is_digest, is_elided, is_marked, is_random, is_stand_in, wordiness
from memlane.gate.secrets.rule import pattern

# "Password" in other languages; the rest of the word may follow.
_FOREIGN = (
    "contrase", "wachtwoord", "senha", "hasło", "парол", "密码", "密碼", "パスワード", "비밀번호", "kennwort",
    "lösenord", "adgangskode", "heslo", "şifre", "parola", "salasana", "jelszó", "κωδικ", "clave", "mật khẩu", "סיסמ",
    "كلمة المرور", "รหัสผ่าน",
)  # fmt: skip
_WORDS = ("pass", "pw", "secret", "token", "key", "auth", "cred", "psk", *_FOREIGN)

# What may follow the word, up to and with the value. All repeats are bounded: linear time.
_VALUE = (
    r"[ \t*]{0,6}(?:(?P<sigil>[a-z]{1,2}|@)?(?P<quote>\\\\?[\"']|\"\"\"|'''|[\"']|`{1,3})(?![\"'])"
    r"(?P<quoted>(?:(?!(?P=quote))[^\n]){1,600}+)(?P=quote)"
    r"|(?P<bare>(?:[^\s\"'`,;<>()\[\]{}|&=]|&(?!\w{1,30}=)|=(?=[\s=\"'`]|\Z)){4,600}+)(?P<after>[^\n]{0,20}))"
)
_VERB = r"is|was|to|ist|war|es|est|lautet"
_SIGNED = (
    rf"(?P<name>(?:[^\W是为為は]|[.-]){{0,40}}+)(?P<more>(?:[ \t]{{1,2}}(?!(?:{_VERB})\b)[\w.-]{{1,20}}+){{0,4}}?)"
    r"(?P<close>(?:\[\d{0,4}\])?[\"'`\])*}]{0,4}+|\\\\?[\"'])[ \t]{0,20}(?P<sep>"
    # A name and its value as two fields, and the default of a variable.
    r"[,;]?\s{0,20}[\"'`]?\b(?:value|default)\b[\"'`]?[ \t]{0,4}[:=]|</key>\s{0,20}<string>"
    r"|\{[^{}]{0,300}?\bdefault[ \t]{0,10}="
    # A declaration with a type.
    r"|:[ \t]{0,2}[&*]?(?:'\w{1,10} )?[\w.<>?]{1,30}[ \t]{0,3}=(?=[ \t]{0,3}[\"'`])"
    rf"|:[-=]|:{{1,3}}=?|：|=>|[!=]?={{1,3}}|->|→|\?=|\|\|=?|,|>|\(|是|为|為|は"
    rf"|\b(?:is|was)[ ](?:now|set|changed|reset|updated)(?:[ ]to)?\b:?|\b(?:{_VERB})\b:?)"
) + _VALUE
_BLANK = r"(?P<name>[\w.-]{0,40}+)(?P<more>)(?P<close>[\"'`\])*}]{0,2})(?P<sep>)[ \t]{1,4}" + _VALUE
# Names, without the signs between their words, that hold such a word and name no credential.
_OTHER_NAMES = tuple(
    """
    publickey publictoken pubkey primarykey foreignkey partitionkey sortkey cache idempot hotkey keyboard
    keycode keyword keyname keynote keyfile keyframe keyid keypath keysize keylen keytype keyring keymap
    keyalias keyusage keypair keyvault keyspace keyup keydown keypress keybind keystroke keychain keyhash
    keystore keychars keystr keying monkey turkey hockey donkey jockey whiskey turnkey objectkey s3key filekey
    sitekey mapkey tokeniz tokenis tokentype tokencount tokenlimit tokenur tokenendpoint tokenexp tokenname
    tokenlen tokenbudget tokenusage tokenper tokenttl tokenfile tokenpath tokenaddress tokencontract tokenmint
    tokensymbol maxtoken ntokens nexttoken pagetoken synctoken webtoken cancellation cancelation continuation
    csrf xsrf author authent authtype authmode authur authmethod authprovider authserver authendpoint
    authdomain authplugin authdb authsource authscheme authuser authname oauthur oauthscope compass bypass
    passag passeng passiv passion passport surpass passed passes passing passthr passwordless passwordfile
    passwordpath passwordpolicy passwordhash passwordfield passwordreset passwordinput passwordlength
    passwordmanager passwordprotect passwordprompt passwordtype passwordage passwordchange passwordenc
    passwordcommand passwordcmd passwordlabel passwordhint passwordrule passwordmin passwordmax passwordur
    passwdfile encryptedpassword secretar secretname secretpath secretfile secretref secretid secretsid
    secretarn secretversion secrettype secretmanager secretsmanager secretstore secretur secretmount
    secretengine secretlength credit credo credib credul credenz accredit sacred incred discred credfile
    credpath credtype credhelper credprovider credstore credentialfile credentialpath credentialtype
    credentialhelper credentialprovider credentialsfile credentialspath credentialid credentialsid fingerprint
    sha1 sha256 sha512 hash digest checksum integrity commit uuid guid translation i18n audience issuer alphabet charset
    accessib accessor accessid accesslevel accessmode accesstype accesspoint accesscontrol accesslog
    """.split()
)
_PASSWORDISH = (
    r"pass(?:w(?:or)?d|wort|phrase|code|wrd|e)?s?(?:$|[^a-z])|passw|pwd|psk|(?:^|[^a-z-])pw(?:$|\s)"
    r"|masterauth|passord|" + "|".join(_FOREIGN)
)
# Names that say by themselves that the value is a secret; a bare "key" or "auth" does not.
_STRONG_NAME = (
    r"secret|token|passw|passphrase|pwd|(?:api|access|auth|private|client|account|app|application|consumer"
    r"|licen[cs]e|encrypt(?:ion)?|signing"
    r"|master|subscription|service|session|webhook|shared|server|admin|root|deploy|rest|write|read|admin"
    r"|security|project|integration|user|sdk"
    r"|storage|secret|encryption|aes|hmac|jwt|bot|test|live|prod(?:uction)?|personal|vapid|ingest|ingestion"
    r"|management|tenant|org|partner)"
    r"[_. -]?key|apikey|credential"
)
# A password without digits that holds one of these is an example's.
_WEAK = r"pass|secret|pw|user|admin|login|key|token|test"
# Methods, formats and versions, which prose puts after "password" or "token".
_ALGORITHM = r"sha|md[45]|hmac|pbkdf|crypt|argon|aes|auth|utf|base\d|x509|ldap|v\d|2fa|ntlm|http|\d(?:st|nd|rd|th)\b"
# Numbers, paths, dotted names, constants and file names.
_OTHER_VALUES = (
    r"[\d.,:/-]+|[A-Za-z]+[-/.][A-Za-z./_-]+|(?-i:[A-Z][A-Z_]*)\d{0,2}(?::(?-i:[A-Z_]+)\d{0,2})?"
    r"|.*\.(?:txt|md|json|ya?ml|py|js|html?|key|pem|crt)"
)
_LOGIN = (
    r"(?:user(?:[_-]?(?:name|id))?|usr|uid|login|account)[\"'\])]{0,3}[ \t]{0,10}(?:=>|:=|[=:]|[ \t]"
    r"(?=[\"']))[ \t]{0,10}[^\s=]{2}"
)
_JOINED = dict.fromkeys(map(ord, "_-. \t"))


def _has(what: str, value: str) -> bool:
    return bool(re.search(what, value))


def is_other_name(name: str) -> bool:
    """True for a name with "key" or "token" in it that names no credential: `primary_key`, `keyboard`, `max_tokens`."""
    plain = name.lower().translate(_JOINED).replace("hashicorp", "")
    return any(stem in plain for stem in _OTHER_NAMES)


def find(text: str, lowered: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield (rule, description, start, end) of each value that is assigned to a credential's name."""
    starts = sorted({at for word in _WORDS for at in places(lowered, word, len(word))})
    done = 0
    for start in starts:
        if start < done:
            continue
        for form in (_SIGNED, _BLANK):
            match = pattern(form).match(text, start)
            found = match and (form is _SIGNED or _may_stand_alone(match)) and _read(text, start, match)
            if found:
                done = found[3]
                yield found
                break


def _may_stand_alone(match: re.Match[str]) -> bool:
    """Whether a value with only blanks before it can be a secret at all; quickly rules out words of prose."""
    value = match["bare"]
    return value is None or len(value) >= 16 or pattern(r"\d").search(value) is not None


def _read(text: str, start: int, match: re.Match[str]) -> tuple[str, str, int, int] | None:
    before = pattern(r"[\w.-]{0,30}+(?: [\w.-]{1,20}+)?").match(text[max(0, start - 52) : start][::-1])
    name = (before[0][::-1] if before else "") + match["name"] + match["more"]
    group = "quoted" if match["quoted"] is not None else "bare"
    value = match[group] if group == "quoted" else match[group].rstrip(".,:;?*_~\\")
    begin = match.start(group)
    end = begin + len(value)
    rule = _judge(name.lower(), match, value)
    if not rule or is_other_name(name) or is_elided(text, end):
        return None
    if group == "bare" and text[end : end + 1] == "=":  # the rest of a password with a sign in it
        rest = pattern(r"=[^\s\"'`,;<>|&]{0,200}+").match(text, end)
        end = rest.end() if rest else end
    return *rule, begin, end


def places(lowered: str, word: str, step: int) -> Iterator[int]:
    """Where a word occurs; the search goes on `step` characters after each place."""
    at = lowered.find(word)
    while at >= 0:
        yield at
        at = lowered.find(word, at + step)


def _judge(name: str, match: re.Match[str], value: str) -> tuple[str, str] | None:
    quoted = match["quoted"] is not None
    password = bool(pattern(_PASSWORDISH).search(name))
    if not password and len(value) < 20 and not re.search(r"\d", value) and not _is_noise(value):
        return None
    sep = _sign(match)
    if quoted and "secret" in name and re.fullmatch(r"(?:django-insecure-)?[a-z0-9!@#$%^&*(_=+)-]{40,64}", value):
        # Django draws from these signs, `%(` and `$(` among them.
        return ("assigned-secret", "secret in an assignment") if entropy(value) > 4 else None
    if is_marked(value) if quoted else decoys.is_placeholder(value):
        return None
    if not quoted and (match["after"][:1] in ("(", "[") or value[0] in "{<\\/"):
        return None
    if not quoted and value[0] in "$@&?^%-" and not (_has(r"\d", value) and _has(r"[!@#$%^&*]", value[1:])):
        return None  # a variable or an option; a generated password may begin so too
    if password:
        return ("password", "password") if _is_password(value, sep, quoted, match) else None
    if is_stand_in(value) or re.search(r"\s", value):
        return None
    strong = bool(pattern(_STRONG_NAME).search(name))
    if sep in ("", ",", ">", "(", "is", "->") and not (strong and is_random(value, 16)):
        return None
    secret = "assigned-secret", "secret in an assignment"
    if strong and sep and re.fullmatch(r"\d{20,}", value) and len(set(value)) > 4:
        return secret
    if is_digest(value):
        return secret if strong and is_random(value) else None
    if not strong and not re.fullmatch(r"[\w+/=!@#$%^&*()]+", value):
        return None  # a bare "key" has names and paths for values more often than secrets
    if is_random(value, 16) or (strong and 8 <= len(value) < 40 and (_is_short_key(value) or _is_noise(value))):
        return secret
    signs = strong and quoted and len(value) >= 20 and _has(r"\d", value) and _has(r"[!@#$%^&*=+]", value)
    if signs and re.fullmatch(r"[\w!@#$%^&*()=+.,;:?~/-]+", value) and entropy(value) > 3.5:
        return secret  # a framework's SECRET_KEY, full of signs
    return None


def _sign(match: re.Match[str]) -> str:
    """The sign between name and value: `=` for all that assigns, `is` for verbs, or the sign itself."""
    sep = match["sep"].strip().lower().rstrip(":") or match["sep"].strip()
    if pattern(rf"(?:{_VERB}|是|为|為|は)(?: .*)?").fullmatch(sep):
        return "is"
    closed = sep == ">" and match["after"] is not None and match["after"].startswith("</")
    return sep if sep in ("", ",", "(", "->", ":", "=>") or (sep == ">" and not closed) else "="


def _is_password(value: str, sep: str, quoted: bool, match: re.Match[str]) -> bool:
    if len(value) < 4 or pattern(_OTHER_VALUES).fullmatch(value):
        return False
    kinds = decoys.kinds(value)
    strong = kinds[2] and sum(kinds) >= 2
    login = pattern(_LOGIN).search(match.string, max(0, match.start() - 150), match.start())
    if login and sep in ("=", ":", "=>", "") and (quoted or sep):
        # Next to a user's name even a weak word is the password.
        weak = (_has(r"^[A-Za-z_-]+$", value) and pattern(_WEAK).search(value)) or len(value.split()) > 2
        prose = not quoted and not strong and match["after"].strip()[:1].isalpha()
        return not is_stand_in(value) and not weak and not prose
    if is_stand_in(value) or re.search(r"\s", value) or len(value) < 5:
        return False
    if sep == "":
        return strong and _stands_for_password(value, sum(kinds), quoted, match)
    if sep in (",", ">", "(", "->"):
        return quoted and strong and len(value) >= 8
    if match["more"] or sep == "is":
        # Words between them: only a value with a digit, and "pass" may be the verb.
        return strong and match["name"] != "pass" and not re.match(r"[\w.-]+ ", value)
    if strong or _is_noise(value):
        return True
    if kinds[3] and not re.fullmatch(r"[\w.-]+", value):
        return len(value) >= 6 and not re.search(r"[:=]", value)
    if quoted or (sep == "=" and match[0][:1].isupper()):
        return len(value) >= 6 and not pattern(_WEAK).search(value)
    return False


def _stands_for_password(value: str, kinds: int, quoted: bool, match: re.Match[str]) -> bool:
    """For a value with only blanks before it: an option, a line of its own, or a value that is no word of prose."""
    text, start = match.string, match.start()
    line = text[max(0, start - 60) : start].rpartition("\n")[2].lower()
    if re.search(r"(?:^|\s)--?[\w-]*$", line):
        return True
    if re.search(_ALGORITHM, value, re.IGNORECASE):
        return False
    declared = re.fullmatch(r"[\s>*-]*(?:(?:env|setx?|arg|#define|config)\s+)?[\w.-]*", line)
    if declared and len(value) >= 6 and (quoted or not match["after"].strip()):
        return True
    return len(value) >= 7 and (quoted or kinds >= 3) and wordiness(value) < 0.9


def _is_noise(value: str) -> bool:
    """Letters without a word in them, in both cases: a generated value that happens to have no digit."""
    if len(value) < 10 or not value.isalpha():
        return False
    return len(re.findall(r"[a-z][A-Z]|[A-Z][a-z]", value)) >= 4 and wordiness(value) < 0.65


def _is_short_key(value: str) -> bool:
    if not re.search(r"\d", value) or not re.search(r"[A-Za-z]", value) or re.search(r"[^\w+/=.~!@#$%^&*-]", value):
        return False
    if re.fullmatch(
        r"v?\d+(?:\.\w+)+|\d+[a-z]{1,3}|[a-z]+[-_.]?\d{1,2}|\d{4}-\d\d.*|[a-z]+"
        r"(?:[-_.][a-z]+)*[-_.]?\d{0,2}",
        value,
        re.IGNORECASE,
    ):
        return False
    return wordiness(value) < 0.8 and entropy(value) >= 2.5
