"""Rows for logins in addresses, headers, connection strings, configuration files, SQL and code."""

from __future__ import annotations

from memlane.core.values import replace
from memlane.gate.secrets import proofs
from memlane.gate.secrets.decoys import is_generated, is_password, is_random, kinds
from memlane.gate.secrets.rule import Rule, form, pattern, read_whole, wide


def login_pair(value: str) -> bool:
    """A password after a user's name: with a digit, since prose has "login with Google/GitHub"; no name of a thing."""
    named = pattern(r"[a-z]+(?:[-_][a-z]*\d{0,3})+").fullmatch(value)
    return is_password(value) and (is_generated(value) or (kinds(value)[2] and not named))


def mail_pair(value: str) -> bool:
    """A password after somebody's address: letters and a number, which are no date, version or name of a file."""
    lower, upper, digit, _ = kinds(value)
    return (
        digit
        and (lower or upper)
        and is_password(value)
        and not pattern(r"[\w./-]*\d{4}-\d\d|v?[\d.]+\w*|.*\.[a-z]{2,4}|.*/.*").fullmatch(value)
    )


# fmt: off

ADDRESSES: tuple[Rule, ...] = (
    *read_whole(
        replace(form("url-password", "password in an address", "@",
                     r"://[^\s/:@\"'<>`|\[]{0,100}:()(?=\S{3,200}@(?!localhost|127\.|example\.|host|sha256:)[\w\[$.{%-])",
                     group=1, starts_word=False, check=proofs.password_in_url), upto="@"),
        replace(form("url-password", "password in an address", "@",
                     r"://[^\s/:@\"'<>`|\[]{0,100}:()(?=\S{3,200}@(?:localhost|127\.|example\.|host))", group=1,
                     starts_word=False, check=proofs.password_on_localhost), upto="@"),
        replace(form("url-password", "password in an address", "oracle:",
                     r"oracle:(?:thin|oci8?):[\w$#]{1,40}/()(?=[^\s/\"'<>]{3,60}@)", group=1, ignore_case=True,
                     check=proofs.password_in_url), upto="@"),
    ),
    *wide(
    form("url-password", "password in an address", "@",
         # The key in the address of a Sentry project is public.
         r"://([0-9a-f]{40}|[A-Za-z0-9_]{30,100})(?:@|:x-oauth-basic@|:@)(?![\w.-]{0,60}sentry)[\w.-]{3,100}", group=1,
         starts_word=False, check=is_random),
    form("signed-url", "signature of an address", "-signature=", r"X-(?:Amz|Goog)-Signature=([0-9a-f]{64,600}+)",
         group=1, ignore_case=True, starts_word=False, entropy=3),
    ),
)

HEADERS: tuple[Rule, ...] = wide(
    form("jenkins-password", "first Jenkins password", "proceed+_to+_installation",
         r"proceed to installation:\s{1,12}([0-9a-f]{32})(?![0-9a-f])", group=1),
    form("jenkins-password", "encrypted by Jenkins", "aqaaabaaa",
         r"\{(?:[\w.-]{1,40}[ ])?AQAAABAAA[ ]?([^\s{}<>\"']{8,400}+)\}", group=1, starts_word=False, check=is_random),
    form("basic-auth", "Basic login", "basic", r"basic[ :]{1,2}[\"']?([A-Za-z0-9+/]{8,400}+={0,2})(?![\w.-])", group=1,
         ignore_case=True, check=proofs.basic_pair),
    form("bearer-token", "bearer token", "bearer", r"bearer[ :=]{1,3}[\"'`]?([A-Za-z0-9_.~+/=-]{6,4000}+)", group=1,
         ignore_case=True, check=proofs.bearer, reach=4200),
    form("auth-header", "token in a header", "authorization",
         r"[Aa](?:uthorization|UTHORIZATION)\\?[\"']?\s{0,2}[:=,]\s{0,3}\\?[\"'`]?(?!(?i:basic|bearer)\b)"
         r"(?:[A-Za-z][\w-]{1,20}[ =:]{1,2}[\"']?)?([A-Za-z0-9_.~+/=:-]{10,2000}+)", group=1,
         check=proofs.header_value, starts_word=False, reach=2200),
    form("session-cookie", "session cookie", "sessionid= sessid= .sid= _session= cookie:",
         r"(?:(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|[\w.-]{0,30}_session)=|cookie:\s[^\n]{0,150}?"
         r"(?:sess|sid|auth|token)[a-z]{0,8}=)([A-Za-z0-9%._|+/~-]{20,4000}+)", group=1,
         ignore_case=True, check=is_random, reach=4400),
)

FILES: tuple[Rule, ...] = read_whole(
    form("curl-login", "login on a curl command", "curl+_ wget+_ http+_ https+_",
         r"(?:\s-[ua]|--user(?!-agent)|--proxy-user|--auth(?!-))[ =\\\n\t]{0,3}[\"']?"
         r"[^\s:\"'$<{]{0,80}[\"']?:()(?=\S{3})",
         group=1, starts_word=False, check=proofs.password_in_url),
    replace(form("curl-login", "key as the user of a curl command", "curl+_",
                 r"\s(?:-u|--user)[ =]?[\"']?()(?=[^\s:\"'$<{}]{10,200}:[\"'\s])", group=1, starts_word=False,
                 check=proofs.password_in_call), upto=":"),
    form("sasl-password", "password of a mail relay", "]:",
         r"\[[\w.-]{1,100}\]:\d{2,5}\s{1,8}[\w.@+-]{1,80}:()(?=\S{5})", group=1, starts_word=False, check=is_password),
    form("netrc-password", "netrc password", "login+_",
         r"(?:machine\s{1,3}\S{1,200}|default)\s{1,4}login\s{1,3}\S{1,200}\s{1,4}password\s{1,3}()(?=\S{3})", group=1,
         check=proofs.password_in_url),
    form("pgpass-password", "password in a .pgpass line", ":5432: :*:",
         r"[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:()(?=\S{5,100}(?:\s|\Z))", group=1,
         check=is_password),
    # A connection string is evidence enough for a weak word.
    form("odbc-password", "password in a connection string", "password= pwd= password+_= pwd+_=",
         r"(?:user(?:[ _]?id|name)?|uid|server|data source|database|host|driver)\s{0,2}=\s{0,2}[^\s;=][^\n]{0,200}?"
         r"[;\s&?,](?:password|pwd)\s{0,2}=\s{0,2}()(?=\S{3})", group=1, ignore_case=True, starts_word=False,
         check=proofs.odbc_password),
    form("cisco-secret", "password of a network device", "username+_ enable+_ -server+_",
         r"(?:(?:enable|username\s{1,2}\S{1,40}(?:\s{1,2}privilege\s\d{1,2})?)\s{1,2}(?:secret|password)"
         r"|(?:tacacs|radius)-server\s(?:host\s\S{1,60}\s)?key)\s{1,2}[05789]\s{1,2}()(?=\S{4})", group=1,
         check=is_password),
    form("snmp-community", "SNMP community", "snmp-server", r"snmp-server community ()(?=\S{6,60} R[OW]\b)", group=1,
         check=is_password),
    form("login-pair", "user and password",
         "cred login wifi wlan log+_in+_ sign+_in+_ logged+_in+_ signed+_in+_ zugangsdaten identifiants basic+_auth",
         r"(?:(?:creds?|credentials|credenziali|credenciales|credenciais|zugangsdaten|identifiants|basic auth|logins?"
         r"|wi-?fi|wlan)(?:\s(?:for|of|to|on|at|in)(?:\s[\w.-]{1,20}){1,3})?"
         r"(?:\s{0,2}(?:[:=]|->|→)|\s(?:is|are|with|as))"
         r"|(?:log(?:ged)?|sign(?:ed)?)[ -]in (?:with|as|using))\s{0,3}[\"'`]?[\w.@-]{2,40}"
         r"(?::|\s?/\s?(?![\w./-]{0,60}\.[a-z]{1,5}(?!\w)))"  # "login: src/auth.py" is a file
         r"()(?=[^\s/]\S{5})", group=1, ignore_case=True, check=login_pair),
)

# After a person's address: "the demo account is demo@acme.test / …".
FILES += read_whole(
    form("login-pair", "address and password", "@",
         r"(?<=[\w+-])@[\w-]{1,40}(?:\.[\w-]{1,20}){1,3}[\"'`]? {1,2}[/|] {1,2}()(?=\S{6})", group=1,
         starts_word=False, check=mail_pair),
)

# The accounts that every machine has, where a generated password follows them.
FILES += read_whole(
    form("login-pair", "user and password", "admin: admin/ root: root/ istrator: istrator/ postgres:",
         r"(?:admin|root|administrator|postgres)[:/]()(?=[^\s/]\S{7})", group=1, ignore_case=True, not_after="_-./:@",
         check=is_generated),
)

CODE: tuple[Rule, ...] = read_whole(
    form("sql-password", "password in SQL", "identified+_",
         r"\b(?:user|role|grant|link)\b[^;]{0,160}?\bidentified(?:\s{1,9}with\s{1,9}\S{1,40})?\s{1,9}by\s{1,9}"
         r"(?:password\s{1,9}|values\s{1,9})?()(?=[\"']|\S{0,90}\d\S{0,90}\s{0,3}(?:;|\Z|\n"
         r"|\baccount|\brequire|\bdefault|\bwith|\btemp|[\"'`)]))", group=1, ignore_case=True, check=is_password),
    form("sql-password", "password in SQL", "password+_' password+_n' password=' password+_=",
         r"(?:create|alter)\s(?:user|role|login)\s[^;\n]{1,160}?\bpassword\s{0,4}=?\s{0,4}N?()(?='[^'\s]{4})",
         group=1, ignore_case=True, check=proofs.password_in_url),
    form("jwt-secret", "secret that signs tokens", "jwt",
         r"jwt\.(?:sign|verify|encode|decode)\([^\n]{1,120}?,\s{0,3}()(?=[\"'][^\"'\n]{6})", group=1,
         ignore_case=True, check=proofs.mixed),
    form("hmac-secret", "secret that signs messages", "hmac.new( createhmac( hash_hmac(",
         r"(?:hmac\.new\(\s{0,4}b?|(?:createHmac|hash_hmac)\([^\n()]{1,80}?,\s{0,4})()(?=[\"'][^\s\"'\n]{16})", group=1,
         ignore_case=True, starts_word=False, check=is_random),
    form("login-call", "password in a call", "connect( ection( auth( auth=( .login( pdo( ntials( wifi.begin(",
         r"(?:connect|getconnection|basic_?auth|auth=|\.login|pdo|credentials|wifi\.begin|\bauth)\s?\("
         r"[^()\n]{0,160}?[\"'][^\"'\n]{1,80}[\"']\s{0,3},\s{0,3}()(?=[\"'][^\s\"'\n]{5})", group=1,
         ignore_case=True, starts_word=False, check=proofs.password_in_call),
    form("login-call", "password in a call", "auth(", r"\.auth\(\s{0,4}()(?=[\"'][^\s\"'\n]{8,100}[\"']\s{0,3}\))",
         group=1, ignore_case=True, starts_word=False, check=is_generated),
    form("login-call", "token in a call", ".login(", r"\.login\(\s{0,4}()(?=[\"'][A-Za-z0-9_.-]{40,200}[\"'])", group=1,
         starts_word=False, check=proofs.random_key),
    form("compared-secret", "secret in a comparison", "== !=",
         r"()(?=[\"'][^\s\"'\n]{6,100}[\"']\s{0,3}[=!]==?\s{0,3}[\w.]{0,40}(?:password|passwd|secret|private_?key"
         r"|api_?key|token)\b)", group=1, ignore_case=True, starts_word=False, check=proofs.password_in_call),
    form("dotnet-login", "password in a .NET or PowerShell login", "networkcredential directoryentry viserver",
         r"(?:NetworkCredential\(\s{0,9}(?:@?\"[^\"\n]{1,100}\"|[\w.]{1,60})\s{0,9},\s{0,9}(?=@?\")"
         r"|DirectoryEntry\([^;]{1,200}?,\s{0,9}(?:@?\"[^\"\n]{1,100}\"|[\w.]{1,60})\s{0,9},\s{0,9}(?=@?\")"
         r"|Connect-VIServer[^\n]{1,200}?\s-Pass(?:word)?\s{1,3})()(?=\S{3})", group=1,
         ignore_case=True, check=proofs.not_stand_in),
    form("secure-string", "password in PowerShell", "convertto-securestring",
         r"ConvertTo-SecureString\s{1,3}(?:-(?:String|AsPlainText|Force)\s{1,3}){0,3}()(?=\\{0,3}[\"'][^\s\"'])",
         group=1, ignore_case=True, check=proofs.password_in_url),
    form("psexec-password", "password on a PsExec command", "psexec",
         r"psexec(?:\.exe)?\s[^\n]{0,200}?\s-p\s{1,2}()(?=[^\s-]\S{3})", group=1,
         ignore_case=True, check=proofs.not_stand_in),
)

LOGINS: tuple[Rule, ...] = (*ADDRESSES, *HEADERS, *FILES, *CODE)
