"""Rows for passwords on a command line, by the option in which each tool takes them.

`--password x` of any tool is read by `assignments`; here are short options that mean a password to some tools only:
`-p` is a password for mongosh and a port for docker.
"""

from __future__ import annotations

from memlane.core.values import replace
from memlane.gate.secrets.decoys import is_password
from memlane.gate.secrets.rule import Rule, form, read_whole

_VALUE = r"()(?=\S{4})"
# Tools (separated by spaces), the keyword of the option, and its pattern up to the value. The keyword is the option
# and not the tool, because prose names tools more often than options.
_OPTIONS = (
    ("sshpass twine cqlsh rdesktop crackmapexec netexec nxc evil-winrm hydra influx", "+_-p", r"-p[ =]?"),
    ("mongo mongosh mongodump mongorestore mongoimport mongoexport", "+_-p", r"-p[ =]?"),
    ("mysql mysqldump mysqladmin mariadb mariadb-dump", "+_-p", r"-p"),
    ("sqlcmd osql bcp ipmitool mosquitto_pub mosquitto_sub zip unzip", "+_-p", r"-P[ =]?"),
    ("7z 7za rar unrar", "+_-p", r"-p"),
    ("redis-cli keydb-cli valkey-cli", "+_-a+_", r"-a[ =]"),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami", "+_-w", r"-w[ =]?"),
    ("xfreerdp wlfreerdp mstsc", "/p:", r"/p:"),
    ("openssl", "+_-k+_ +_pass:", r"(?:-k |-pass(?:in|out)? pass:)"),
    ("ssh-keygen", "+_-n+_ +_-p", r"-[NP] "),
    ("keytool jarsigner apksigner", "storepass", r"-(?:src|dest)?(?:store|key)pass(?:wd)? "),
)


def _line(keywords: str, regex: str, ignore_case: bool = True) -> Rule:
    return form("cli-password", "password on a command line", keywords, regex, group=1, check=is_password,
                ignore_case=ignore_case)  # fmt: skip


def _option(tools: str, keywords: str, option: str) -> Rule:
    names = tools.replace(" ", "|")
    return _line(keywords, rf"(?:{names})\s[^\n|;]{{0,160}}?(?<=\s){option}{_VALUE}", ignore_case=False)


COMMANDS: tuple[Rule, ...] = read_whole(
    *(_option(*row) for row in _OPTIONS),
    _line("-passw", rf"(?<=\s)-passw(?:ord)?[ :=]{_VALUE}"),
    _line(
        "login+_",
        r"(?:docker|podman|nerdctl|helm|az|oc|skopeo|buildah|crane|cf|gh|npm|vault|argocd)\s[^\n|;]{0,80}?login\s"
        rf"[^\n|;]{{0,150}}?(?<=\s)(?:-p|--password|--token)[ =]{{1,2}}{_VALUE}",
    ),
    _line("login+_", r"vault login (?:token=)?()(?=[A-Za-z0-9][\w.-]{19})"),
    _line("htpasswd", rf"htpasswd\s-[a-zA-Z]{{0,6}}b[a-zA-Z]{{0,6}}\s[^\n|;]{{1,160}}?\s[\w.@-]{{1,60}}\s{_VALUE}"),
    _line("smbclient", rf"(?<=\s)-U[ =]?[\"']?[\w.\\/@-]{{1,60}}%{_VALUE}"),
    _line("chpasswd", rf"[\w.-]{{1,40}}:{_VALUE}(?=[^\n|]{{4,120}}\|\s{{0,3}}(?:sudo\s{{1,3}})?chpasswd)"),
    _line("sudo+_-s", rf"echo\s{{1,3}}(?:-n\s)?{_VALUE}(?=[^\n|]{{4,120}}\|\s{{0,3}}sudo\s-S)"),
    replace(_line("sqlplus", r"sqlplus\s[^\n|;]{0,40}?[\w$#]{1,40}/()(?=\S{4,80}@)"), upto="@"),
    _line("rabbitmqctl", rf"rabbitmqctl\s(?:add_user|change_password)\s[\w.-]{{1,40}}\s{_VALUE}"),
    _line(
        "net+_use net.exe",
        r"net(?:\.exe)?\s{1,3}(?:use|user)\s(?=[^/]{0,400}+/)[^\n]{1,200}?\s(?:/user:\S{1,80}\s{1,3})?()"
        r"(?!\\)(?=[^\s/\"'<]{6,60}\s{1,3}/(?:add|user|delete|persistent|y))",
    ),
    _line("net+_use", r"net\s{1,3}use\s(?=[^/]{0,400}+/)[^\n]{1,200}?\s/user:\S{1,80}[ ]{1,3}()(?=[^\s/\"'<]{6,60})"),
)  # fmt: skip
