"""Rows for forms that belong to no vendor: private keys, JWTs, password hashes, `prefix_random`."""

from __future__ import annotations

from memlane.gate.secrets import proofs
from memlane.gate.secrets.rule import Rule, form, wide

# fmt: off

KEYS: tuple[Rule, ...] = wide(
    form("private-key", "private key", "-----begin",
         r"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----(?![\s\\nr\"'+]{0,20}(?:\.\.|…|<|\[|\*|[xX]{3}|[yY]our"
         r"|-----END))(?:\s{0,4}(?:[\w-]{1,20}:[^\n]{0,200}\n\s{0,4}){0,8}[A-Za-z0-9+/=\s\\\"',]{0,20000}+"
         r"(?:-----END[ A-Z0-9_-]{0,60}-----)?)", decoys=False, check=proofs.pem_block, starts_word=False,
         reach=22_000),
    form("private-key", "private key", "ssh2+_encrypted", r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----[^-]{0,20000}+",
         starts_word=False, decoys=False, reach=21_000),
    form("putty-key", "PuTTY private key", "putty-user-key",
         r"PuTTY-User-Key-File-\d:[^\n]{1,60}\n(?:[^\n]{0,200}\n){1,200}?Private-Lines", decoys=False, reach=41_000),
    form("wireguard-key", "WireGuard private key", "privatekey presharedkey",
         r"(?:PrivateKey|PresharedKey)\s{0,3}=\s{0,3}([A-Za-z0-9+/]{43}=)", group=1, starts_word=False),
    form("jwk-private-key", "JWK private key", '"d" d\\"', r"\"d\\?\"\s{0,3}:\s{0,3}\\?\"([A-Za-z0-9_-]{40,700}+)\\?\"",
         group=1, starts_word=False, entropy=4),
    form("jwk-private-key", "symmetric key in a JWK", '"oct oct\\"',
         r"\{[^{}]{0,400}\"kty\\?\"\s{0,3}:\s{0,3}\\?\"oct\\?\"[^{}]{0,400}\}", check=proofs.symmetric_jwk,
         starts_word=False),
    form("ethereum-key", "Ethereum private key", "private",
         r"private[_ -]?key[\"'\])]{0,3}\s{0,3}[=:,]\s{0,3}[\"']?(0x[0-9a-fA-F]{64}|[0-9a-f]{64})(?![0-9a-fA-F])",
         group=1, ignore_case=True, starts_word=False),
)

TOKENS: tuple[Rule, ...] = (
    form("private-key", "private key in base64", "ls0tls1crudjti", r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]{40,20000}+",
         check=proofs.base64_pem, decoys=False),
    # The first bytes of a key in DER (RSA, EC, Ed25519, any in PKCS 8) or in OpenSSH's own form.
    form("private-key", "private key without its frame", "miic miie miij mhcc migh mc4c b3blbnnz",
         r"(?:MII[\w+/]{2}[AQgw]IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAAS)|MHcCAQEEI|MIGHAgEAMBMGByqGSM49|MC4CAQAwBQYDK2V"
         r"|b3BlbnNzaC1rZXktdjEAAAAA)[A-Za-z0-9+/]{30,20000}+={0,2}", decoys=False),
    form("age-key", "age private key", "age-secret-key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    form("nkey-seed", "NATS nkey seed", "su sa so sn sc sx", r"S[UAONCX][A-Z2-7]{56}(?![A-Za-z0-9])",
         check=proofs.crc_base32, decoys=False),
    form("stellar-seed", "Stellar secret seed", "s", r"S[A-D][A-Z2-7]{54}(?![A-Za-z0-9])", check=proofs.crc_base32,
         decoys=False),
    form("bitcoin-key", "Bitcoin private key", "xprv", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
    form("jwt", "JSON Web Token", "eyj zxlk",
         r"eyJ[A-Za-z0-9_-]{8,4000}+\.(?:eyJ[A-Za-z0-9_-]{6,8000}+(?:\.[A-Za-z0-9_-]{0,4000}+)?"
         r"|[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,100}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{16,100}+)",
         check=proofs.jwt, decoys=False),
    form("jwt-base64", "base64 of a JSON Web Token", "zxlkag zxlkmg zxlkaw",
         r"ZXlK(?:aGJHY2lPaU|MGVYQWlPaU|cmFXUWlPaU|aGJHY2lPa|hGJHY2lPaU)[A-Za-z0-9+/]{60,8000}+={0,2}",
         starts_word=True),
)

UNKNOWN: tuple[Rule, ...] = (
    # Vendors keep inventing `prefix_random`; the prefix says it is a key, whoever's it is.
    form("prefixed-key", "key with a prefix",
         "_live_ _test_ _prod_ _sk_ _pat_ _key_ _secret_ _token_ _api_ key_ pat_ tok_ sk_ token_ secret_",
         # Looks back first: a word of many such beginnings would else be tried from every letter.
         r"(?<![\w/.-])[A-Za-z][A-Za-z0-9]{1,15}(?:[_-][A-Za-z0-9]{1,12}){0,4}?_[A-Za-z0-9]{24,200}+",
         check=proofs.prefixed, entropy=3.3, not_after="_/.-"),
)

# What only a name tells from other words and numbers.
_UNIQUE_WORDS = r"(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8}(?![a-z ,]{4})"
_LOCKED = (
    "sim|card|door|alarm|bank|atm|phone|unlock|lock|safe|security|gate|garage|debit|credit|vault|tresor|karte|handy|tür"
)
SPOKEN: tuple[Rule, ...] = wide(
    form("wallet-words", "words that open a wallet", "mnemonic eed+_phrase eed_phrase eed+_words recovery+_phrase",
         r"(?:mnemonic|(?:se{2}d|recovery)[ _](?:phrase|words))[\w ]{0,20}[\"'`]?(?:\s{0,3}[:=]|\sis:?)\s{0,3}[\"'`]?"
         rf"({_UNIQUE_WORDS})", group=1, ignore_case=True, starts_word=False, check=proofs.seed_words),
    form("recovery-code", "recovery code", "recovery+_code recovery_code backup+_code backup_code unlock+_code",
         r"(?:recovery|backup|unlock)[ _]codes?[\"'`]?(?: (?:for|of|to)(?: [\w.-]{1,20}){1,3}?)?"
         r"(?:\s{0,3}[:=]|\s(?:is|are):?)\s{0,3}[\"'`]?"
         r"((?:[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,7}|(?=[a-z]{0,20}\d)[A-Za-z0-9]{8,32})(?![\w-])"
         r"(?:[\s,;]{1,4}(?=\S{0,40}\d)[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,7}(?![\w-])){0,20})", group=1,
         ignore_case=True, starts_word=False, check=proofs.mixed),
    form("pin", "PIN", "pin: pin= pin+_is pin+_code pin+_for+_ pin+_of+_ pin+_to+_ pin+_vom+_ pin+_von+_ pin+_für+_",
         rf"\b(?:(?:{_LOCKED})(?: card)? pin(?: code)?"
         rf"|pin(?: code)? (?:for|of|to|vom|von|für) (?:the |my |our |der |den |dem |das |die )?"
         rf"(?:{_LOCKED})\w{{0,12}}(?: card)?)"
         r"(?:\s{0,2}[:=]|\s(?:is|ist))\s{0,2}[\"'`]?(\d{4,8})(?![\w.-])", group=1, ignore_case=True,
         starts_word=False, check=proofs.not_stand_in),
)

HASHES: tuple[Rule, ...] = (
    form("password-hash", "password hash",
         "$1$ $2 $5$ $6$ $apr1$ $y$ $7$ $gy$ $argon2 $p$ $h$ $pbkdf2 $s$ $scrypt $sha1$ $krb5 $8$ $9$ $14$",
         r"\$(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}|(?:1|apr1)\$[./A-Za-z0-9]{0,16}\$[./A-Za-z0-9]{22}"
         r"|5\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{0,16}\$[./A-Za-z0-9]{43}"
         r"|6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{0,16}\$[./A-Za-z0-9]{86}"
         r"|(?:y|7|gy)\$[./A-Za-z0-9$]{20,150}|argon2(?:id|i|d)\$[^\s\"']{30,300}|[PHS]\$[./A-Za-z0-9]{31,55}"
         r"|pbkdf2[\w-]{0,12}\$[^\s\"']{30,300}|scrypt\$[^\s\"']{30,300}|krb5\w{1,8}\$[^\s\"']{30,4000}"
         r"|[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}|sha1\$\w{1,10}\$[./\w]{1,64}\$[./\w]{28})",
         starts_word=False, decoys=False),
    form("password-hash", "password hash", "pbkdf2_sha pbkdf2: pbkdf2-sha {ssha {sha} {md5} bcrypt_sha scrypt: argon2$",
         r"(?:pbkdf2_sha(?:1|256|512)\$\d{2,8}\$[^\s$\"']{1,64}\$[A-Za-z0-9+/=]{20,100}"
         r"|(?:pbkdf2|scrypt):[\w:]{1,40}\$[^\s$\"']{1,64}\$[0-9a-f]{32,256}|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{24,120}"
         r"|\{MD5\}[A-Za-z0-9+/=]{24}|bcrypt_sha256\$\$?2[abxy]\$\d\d\$[./A-Za-z0-9]{53})"),
    form("netntlm-hash", "Windows password hash", ":::", r"[^\s:]{1,60}:\d{1,10}:[0-9a-f]{32}:([0-9a-f]{32}):::",
         group=1, ignore_case=True),
)
