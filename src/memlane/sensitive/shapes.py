"""Rows for forms that belong to no vendor: private keys, JWTs, logins in addresses and headers, password hashes."""

from __future__ import annotations

from dataclasses import replace

from memlane.sensitive import proofs
from memlane.sensitive.rule import Rule, form


def wide(*rows: Rule) -> tuple[Rule, ...]:
    """The same rows with their keywords looked for in the whole text: these words stand apart from the value."""
    return tuple(replace(row, wide=True) for row in rows)


# fmt: off

KEYS: tuple[Rule, ...] = wide(
    form("private-key", "private key", "-----begin",
         r"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----(?![\s\\nr\"'+]{0,20}(?:\.\.|…|<|\[|\*"
         r"|[xX]{3}|[yY]our|-----END))"
         r"(?:\s{0,4}(?:[\w-]{1,20}:[^\n]{0,200}\n\s{0,4}){0,8}[A-Za-z0-9+/=\s\\\"',]{0,20000}+"
         r"(?:-----END[ A-Z0-9_-]{0,60}-----)?)", decoys=False,
         starts_word=False),
    form("private-key", "private key", "ssh2+_encrypted", r"---- BEGIN SSH2 ENCRYPTE"
         r"D PRIVATE KEY ----[^-]{0,20000}+",
         starts_word=False, decoys=False),
    form("putty-key", "PuTTY private key", "putty-user-key", r"PuTTY-User-Key-File-\d:[^\n]{1,60}\n"
         r"(?:[^\n]{0,200}\n){1,200}?Private-Lines",
         decoys=False),
    form("wireguard-key", "WireGuard private key", "privatekey presharedkey",
         r"(?:PrivateKey|PresharedKey)\s{0,3}=\s{0,3}([A-Za-z0-9+/]{43}=)", group=1, starts_word=False),
    form("jwk-private-key", "JWK private key", '"kty" "d"',
         r"\"d\"\s{0,3}:\s{0,3}\"([A-Za-z0-9_-]{40,700}+)\"", group=1, starts_word=False, entropy=4),
    form("ethereum-key", "Ethereum private key", "private",
         r"private[_ -]?key[\"'\])]{0,3}\s{0,3}[=:,]\s{0,3}[\"']?(0x[0-9a-fA-F]{64}|[0-9a-f]{64})"
         r"(?![0-9a-fA-F])", group=1,
         ignore_case=True, starts_word=False),
)

TOKENS: tuple[Rule, ...] = (
    form("private-key", "private key in base64", "ls0tls1crudjti",
         r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]{40,20000}+", check=proofs.base64_pem, decoys=False),
    form("age-key", "age private key", "age-secret-key", r"AGE-SECRET-KEY-1[QPZRY9X8"
         r"GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    form("bitcoin-key", "Bitcoin private key", "xprv", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
    form("jwt", "JSON Web Token", "eyj zxlk",
         r"eyJ[A-Za-z0-9_-]{8,4000}+\.(?:eyJ[A-Za-z0-9_-]{6,8000}+\.[A-Za-z0-9_-]{8,4000}+"
         r"|[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,100}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{16,100}+)",
         check=proofs.jwt, decoys=False),
    form("jwt-base64", "base64 of a JSON Web Token", "zxlkag zxlkmg zxlkaw",
         r"ZXlK(?:aGJHY2lPaU|MGVYQWlPaU|cmFXUWlPaU|aGJHY2lPa|hGJHY2lPaU)[A-Za-z0-9+/]{60,8000}+={0,2}",
         starts_word=True),
)

LOGINS: tuple[Rule, ...] = wide(
    form("url-password", "password in an address", "@",
         r"://[^\s/:@\"'<>`|\[]{0,100}:([^\s/@\"'<>`|]{3,200})@(?!localhost|127\.|example\.|host)[\w\[$.{-]", group=1,
         starts_word=False, check=proofs.password_in_url),
    form("url-password", "password in an address", "@",
         r"://[^\s/:@\"'<>`|\[]{0,100}:([^\s/@\"'<>`|]{3,200})@(?:localhost|127\.|example\.|host)", group=1,
         starts_word=False,
         check=proofs.password_on_localhost),
    form("url-password", "password in an address", "@",
         r"://([0-9a-f]{40}|[A-Za-z0-9_]{30,100})(?:@|:x-oauth-basic@|:@)[\w.-]{3,100}", group=1,
         starts_word=False,
         check=proofs.random),
    form("basic-auth", "Basic login", "basic",
         r"basic[ :]{1,2}[\"']?([A-Za-z0-9+/]{8,400}+={0,2})(?![\w.-])", group=1, ignore_case=True,
         check=proofs.basic_pair),
    form("bearer-token", "bearer token", "bearer",
         r"bearer[ :=]{1,3}[\"'`]?([A-Za-z0-9_.~+/=-]{6,4000}+)", group=1, ignore_case=True,
         check=proofs.bearer),
    form("auth-header", "token in a header", "authorization",
         r"[Aa](?:uthorization|UTHORIZATION)\\?[\"']?\s{0,2}[:=,]\s{0,3}\\?[\"'`]?(?!(?i:basic|bearer)\b)"
         r"(?:[A-Za-z][\w-]{1,20}[ =:]{1,2}[\"']?)?"
         r"([A-Za-z0-9_.~+/=:-]{10,2000}+)", group=1, check=proofs.header_value, starts_word=False),
    form("curl-login", "login on a curl command", "curl+_ wget+_ http+_ https+_",
         r"(?:\s-u|\s-a|--user(?!-agent)|--proxy-user)[ =\\\n\t]{0,3}[\"']?[^\s:\"'$<{]{0,80}[\"']?:[\"']?"
         r"([^\s\"'$<{}]{3,200}+)",
         group=1, starts_word=False, check=proofs.password_in_url),
    form("cli-password", "password on a command line", "sshpass mysql+_ mysqldump -passw",
         r"(?:sshpass\s{1,3}-p\s{0,3}|mysql(?:dump|admin)?\s[^\n|;]{0,120}?\s-p|\s-passw(?:ord)?[ :=])[\"']?"
         r"([^\s\"'$<{}-][^\s\"'$<{}]{3,100}+)",
         group=1, check=proofs.cli_password),
    form("cli-password", "password on a login command", "login+_",
         r"(?:docker|podman|helm|az|oc|skopeo|buildah|cf|gh|npm|vault|argocd)\s[^\n|;]{0,80}?login\s[^\n"
         r"|;]{0,150}?(?:-p|--password|--token)[ =]{1,2}"
         r"[\"']?([^\s\"'$<{-][^\s\"'$<{}]{3,200}+)", group=1, check=proofs.cli_password),
    form("jwt-secret", "secret that signs tokens", "jwt",
         r"jwt\.(?:sign|verify|encode|decode)\([^\n]{1,120}?,\s{0,3}[\"']([^\"'\n]{6,200}+)[\"']", group=1,
         ignore_case=True, check=proofs.mixed),
    form("jenkins-password", "first Jenkins password", "proceed+_to+_installation",
         r"proceed to installation:\s{1,12}([0-9a-f]{32})(?![0-9a-f])", group=1),
    form("login-pair", "user and password", "cred login",
         r"(?:creds?|credentials|login|logins)\s{0,2}[:=]\s{0,3}[\"'`]?[\w.@-]{2,40}(?::|\s?/\s?)"
         r"([^\s\"'`/:][^\s\"'`]{5,60}+)", group=1, ignore_case=True, check=proofs.cli_password),
    form("psexec-password", "password on a PsExec command", "psexec",
         r"psexec(?:\.exe)?\s[^\n]{0,200}?\s-p\s{1,2}[\"']?([^\s\"'$<%-][^\s\"'$<%]{3,100}+)", group=1,
         ignore_case=True,
         check=proofs.not_stand_in),
    form("netrc-password", "netrc password", "login+_",
         r"(?:machine\s{1,3}\S{1,200}|default)\s{1,4}login\s{1,3}\S{1,200}\s{1,4}password\s{1,3}(\S{3,200}+)", group=1,
         check=proofs.password_in_url),
    # A connection string is evidence enough for a weak word.
    form("odbc-password", "password in a connection string", "password= pwd= password+_= pwd+_=",
         r"(?:user(?:[ _]?id|name)?|uid|server|data source|database|host|driver)\s{0,2}=\s{0,2}[^\s;=][^\n]{0,200}?"
         r"[;\s&?](?:password|pwd)\s{0,2}=\s{0,2}([^\s;\"'<>${}#*^&][^\s;\"'<>${}&]{2,100}+)", group=1,
         ignore_case=True, starts_word=False, decoys=False, check=proofs.odbc_password),
    form("windows-password", "password on a net command", "net+_use net+_user net.exe",
         r"net(?:\.exe)?\s{1,3}(?:use|user)\s[^\n]{1,200}?\s(?:/user:\S{1,80}\s{1,3})?([^\s/\"'<]{6,60})"
         r"(?=\s{1,3}/(?:add|user|delete|persistent|y))",
         group=1, ignore_case=True, check=proofs.mixed),
    form("dotnet-login", "password in a .NET or PowerShell login", "networkcredential directoryentry viserver",
         r"(?:NetworkCredential\(\s{0,9}(?:@?\"[^\"\n]{1,100}\"|[\w.]{1,60})\s{0,9},\s{0,9}@?\""
         r"|DirectoryEntry\([^;]{1,200}?,\s{0,9}(?:@?\"[^\"\n]{1,100}\"|[\w.]{1,60})\s{0,9},\s{0,9}@?\""
         r"|Connect-VIServer[^\n]{1,200}?\s-Pass(?:word)?\s{1,3}[\"']?)([^\s\"'$<>;,]{3,100}+)", group=1,
         ignore_case=True, check=proofs.not_stand_in),
    form("secure-string", "password in PowerShell", "convertto-securestring",
         r"ConvertTo-SecureString\s{1,3}(?:-String\s{1,3})?[\"']([^\"'$\n]{4,100}+)[\"']", group=1,
         ignore_case=True,
         check=proofs.password_in_url),
    form("nuget-password", "NuGet password", "cleartextpassword key=\"password",
         r"<add\s{1,3}key=\"(?:ClearText)?Password\"\s{1,3}value=\"([^\"]{6,200}+)\"", group=1,
         ignore_case=True),
    form("cisco-secret", "Cisco password", "username+_ enable+_",
         r"(?:enable|username\s{1,2}\S{1,40}(?:\s{1,2}privilege\s\d{1,2})?)\s{1,2}(?:secret"
         r"|password)\s{1,2}[05789]\s{1,2}(\S{4,120}+)", group=1,
         check=proofs.mixed),
    form("xml-password", "password in XML", "word> wd> secret> token> key> phrase>",
         r"<(?:[\w.-]{0,40}(?:password|passwd|pwd|secret|token|api[_-]?key|passphrase))"
         r"(?:\s[^<>]{0,200})?>\s{0,10}([^\s<>{}$]{6,300}+)\s{0,10}</",
         group=1, ignore_case=True, check=proofs.mixed),
)

UNKNOWN: tuple[Rule, ...] = (
    # Vendors keep inventing `prefix_random`; the prefix says it is a key, whoever's it is.
    form("prefixed-key", "key with a prefix", "_live_ _test_ _prod_ _sk_ _pat_ _key_ _secret_ _token_ _api_ "
         "key_ pat_ tok_ sk_ token_ secret_",
         r"[A-Za-z][A-Za-z0-9]{1,15}(?:[_-][A-Za-z0-9]{1,12}){0,4}?_[A-Za-z0-9]{24,200}+",
         check=proofs.prefixed, entropy=3.3,
         not_after="_/.-"),
)

HASHES: tuple[Rule, ...] = (
    form("password-hash", "password hash", "$1$ $2 $5$ $6$ $apr1$ $y$ $7$ $argon2 $p$ $h$ $pbkdf2 $s$ "
         "$scrypt $sha1$ $krb5 $8$ $9$ $14$",
         r"\$(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}|(?:1|apr1)\$[./A-Za-z0-9]{0,16}\$[./A-Za-z0-9]{22}|5\$"
         r"(?:rounds=\d{1,9}\$)?"
         r"[./A-Za-z0-9]{0,16}\$[./A-Za-z0-9]{43}|6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0"
         r"-9]{0,16}\$[./A-Za-z0-9]{86}"
         r"|(?:y|7|gy)\$[./A-Za-z0-9$]{20,150}|argon2(?:id|i|d)\$[^\s\"']{30,300}|[PHS]\$[./A-Za-z0-9]{31,55}"
         r"|pbkdf2[\w-]{0,12}\$[^\s\"']{30,300}|scrypt\$[^\s\"']{30,300}|krb5\w{1,8}\$[^\s\"']{30,4000}"
         r"|[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}|sha1\$\w{1,10}\$[./\w]{1,64}\$[./\w]{28})",
         starts_word=False, decoys=False),
    form("password-hash", "password hash", "pbkdf2_sha pbkdf2: pbkdf2-sha {ssha {sha} {md5} bcrypt_sha "
         "scrypt: argon2$",
         r"(?:pbkdf2_sha(?:1|256|512)\$\d{2,8}\$[^\s$\"']{1,64}\$[A-Za-z0-9+/=]{20,100}|(?:pbkdf2"
         r"|scrypt):[\w:]{1,40}\$[^\s$\"']{1,64}\$[0-9a-f]{32,256}"
         r"|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{24,120}|\{MD5\}[A-Za-z0-9+/=]{24}|bc"
         r"rypt_sha256\$\$?2[abxy]\$\d\d\$[./A-Za-z0-9]{53})"),
    form("netntlm-hash", "Windows password hash", ":::",
         r"[^\s:]{1,60}:\d{1,10}:[0-9a-f]{32}:([0-9a-f]{32}):::", group=1, ignore_case=True),
)
