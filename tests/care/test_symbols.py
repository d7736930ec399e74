"""A symbol's own text: what belongs to it, what does not, and that nothing in a file breaks the looking."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.care.fresh.symbols import Unparsable, find

PYTHON = '''\
import os

LIMIT: int = 10
HOSTS = ["a", "b"]

@cached
@retry(times=3)
def login(user):  # not the method
    """Say {who}."""
    def check():
        return "}"
    return check

class Auth:
    timeout = 3

    def login(self):
        return 1

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, value):
        self._name = value

if os.name == "nt":
    def where(): return "windows"
else:
    def where(): return "elsewhere"
'''

SCRIPT = """\
import { a } from "./a";
export const LIMIT = 10
const greet = (name: string): { text: string } => {
  return { text: `Hi ${name} ${[1].map((x) => `{${x}`).join("}")}` }
}

// function login() { not this one }
export async function login(user: User): Promise<{ ok: boolean }> {
  const odd = /[}"'/]{2}/.test("{"); // }
  function check() { return '}' }
  return { ok: odd }
}

@Injectable({ providedIn: "root" })
export class Auth<T = {}> extends Base implements Can {
  private static readonly limit = 5
  #secret = new Map<string, number>()
  handler = async () => {
    return 1
  }

  constructor(private readonly http: Http) { super() }

  get name(): string { return this._name }
  set name(value: string) { this._name = value }

  login(user: string): { ok: boolean } {
    return { ok: !!user }
  }

  @Memo()
  async *walk<K>(key: K) {
    yield key
  }
}

export interface Shape {
  area(): number;
  label?: string
}

export type Id =
  | string
  | { id: string }

enum Colour { Red, Green }

function over(a: string): void
function over(a: number): void
function over(a: unknown) { log(a) }

const api = {
  get: (url) => fetch(url),
  post(url, body) {
    return fetch(url, { body })
  },
}
Legacy.prototype.run = function () { return 1 }
module.exports.start = () => { run() }
const View = () => {
  const onClick = () => { go() }
  return <p title="x">Don't {name} / <b>stop</b></p>
}
const last = 1
"""

GO = """\
package main

import "fmt"

const Limit = 10

const (
	Red = iota // {
	Green
)

var one, two = 1, `raw " {`

type Server struct {
	name string
}

type (
	Id  int
	Key = string
)

func Login(user string) interface{} {
	r := '}'
	return map[string]int{"{": int(r)}
}

func (s *Server) Login(user string) (err error) {
	return nil
}

func (s Stack[T]) Push(item T) { fmt.Println("}") }

var total = one +
	two
"""

RUST = """\
//! Top { of the file
use std::fmt;

pub const LIMIT: [u8; 2] = [1, 2];

#[derive(Debug)]
pub struct Parser<'a, T = u8> {
    text: &'a str, // }
}

pub struct Pair(u8, u8);

impl<'a, T> Parser<'a, T> {
    pub fn parse(&self) -> Result<(), Error> {
        let c = '{'; let q = '\\''; let raw = r#"}" "#; /* } /* nested } */ */
        Ok(())
    }
    const fn limit() -> usize { 3 }
}

impl<T> fmt::Display for Parser<'_, T> where T: Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}}}", 1) }
}

pub trait Walk {
    type Item;
    fn walk(&self) -> u8;
    fn twice(&self) -> u8 { self.walk() * 2 }
}

pub(crate) mod inner {
    pub async fn login() {}
}

macro_rules! say { ($x:expr) => { println!("{}", $x) }; }
static mut COUNT: u32 = { 1 + 2 };
"""

JAVA = '''\
package a.b;
import java.util.*;

/** Not { this. */
@Service("x")
@Conditional({A.class, B.class})
public class Auth<T extends Comparable<T>> implements Can {
    private static final int[] SIZES = {1, 2};
    private String name = "}", other;
    static { init(); }

    public Auth(String name) { this.name = name; }

    @Override
    public Map<String, List<T>> login(String user) throws IOException {
        char c = '{';
        String text = """
            { "a": " }
            """;
        return new HashMap<>() {{ put("}", null); }};
    }

    public void login() { }

    abstract int size();

    public static class Inner {
        void run() { }
    }

    enum Colour { RED, GREEN; Colour next() { return RED; } }
    record Point(int x, int y) { int sum() { return x + y; } }
    @interface Mark { int value() default 1; }
}
'''

FILES = {".py": PYTHON, ".ts": SCRIPT, ".go": GO, ".rs": RUST, ".java": JAVA}

EXPECTED = [
    (".py", "LIMIT", "LIMIT: int = 10"),
    (".py", "HOSTS", 'HOSTS = ["a", "b"]'),
    (
        ".py",
        "login",
        (
            '@cached\n@retry(times=3)\ndef login(user):  # not the method\n    """Say {who}."""\n    def check():\n'
            '        return "}"\n    return check'
        ),
    ),
    (".py", "login.check", '    def check():\n        return "}"'),
    (".py", "check", '    def check():\n        return "}"'),
    (".py", "Auth.login", "    def login(self):\n        return 1"),
    (".py", "Auth.timeout", "    timeout = 3"),
    (
        ".py",
        "Auth.name",
        (
            "    @property\n    def name(self):\n        return self._name\n"
            "    @name.setter\n    def name(self, value):\n        self._name = value"
        ),
    ),
    (".py", "where", '    def where(): return "windows"\n    def where(): return "elsewhere"'),
    (".ts", "LIMIT", "export const LIMIT = 10"),
    (
        ".ts",
        "greet",
        (
            "const greet = (name: string): { text: string } => {\n"
            '  return { text: `Hi ${name} ${[1].map((x) => `{${x}`).join("}")}` }\n}'
        ),
    ),
    (
        ".ts",
        "login",
        (
            "export async function login(user: User): Promise<{ ok: boolean }> {\n"
            "  const odd = /[}\"'/]{2}/.test(\"{\"); // }\n  function check() { return '}' }\n  return { ok: odd }\n}"
        ),
    ),
    (".ts", "login.check", "function check() { return '}' }"),
    (".ts", "Auth.limit", "private static readonly limit = 5"),
    (".ts", "Auth.#secret", "#secret = new Map<string, number>()"),
    (".ts", "Auth.handler", "handler = async () => {\n    return 1\n  }"),
    (".ts", "Auth.constructor", "constructor(private readonly http: Http) { super() }"),
    (
        ".ts",
        "Auth.name",
        "get name(): string { return this._name }\nset name(value: string) { this._name = value }",
    ),
    (".ts", "Auth.login", "login(user: string): { ok: boolean } {\n    return { ok: !!user }\n  }"),
    (".ts", "walk", "@Memo()\n  async *walk<K>(key: K) {\n    yield key\n  }"),
    (".ts", "Shape", "export interface Shape {\n  area(): number;\n  label?: string\n}"),
    (".ts", "Shape.label", "label?: string"),
    (".ts", "Id", "export type Id =\n  | string\n  | { id: string }"),
    (".ts", "Colour", "enum Colour { Red, Green }"),
    (
        ".ts",
        "over",
        "function over(a: string): void\nfunction over(a: number): void\nfunction over(a: unknown) { log(a) }",
    ),
    (".ts", "api.get", "get: (url) => fetch(url)"),
    (".ts", "api.post", "post(url, body) {\n    return fetch(url, { body })\n  }"),
    (".ts", "Legacy.run", "Legacy.prototype.run = function () { return 1 }"),
    (".ts", "start", "module.exports.start = () => { run() }"),
    (".ts", "View.onClick", "const onClick = () => { go() }"),
    (".ts", "last", "const last = 1"),
    (".go", "Limit", "const Limit = 10"),
    (".go", "Green", "Green"),
    (".go", "two", 'var one, two = 1, `raw " {`'),
    (".go", "Server", "type Server struct {\n\tname string\n}"),
    (".go", "Key", "Key = string"),
    (
        ".go",
        "Login",
        "func Login(user string) interface{} {\n\tr := '}'\n\treturn map[string]int{\"{\": int(r)}\n}",
    ),
    (".go", "Server.Login", "func (s *Server) Login(user string) (err error) {\n\treturn nil\n}"),
    (".go", "Stack.Push", 'func (s Stack[T]) Push(item T) { fmt.Println("}") }'),
    (".go", "total", "var total = one +\n\ttwo"),
    (".rs", "LIMIT", "pub const LIMIT: [u8; 2] = [1, 2];"),
    (".rs", "Parser", "#[derive(Debug)]\npub struct Parser<'a, T = u8> {\n    text: &'a str, // }\n}"),
    (".rs", "Pair", "pub struct Pair(u8, u8);"),
    (
        ".rs",
        "Parser.parse",
        (
            "pub fn parse(&self) -> Result<(), Error> {\n"
            "        let c = '{'; let q = '\\''; let raw = r#\"}\" \"#; /* } /* nested } */ */\n        Ok(())\n    }"
        ),
    ),
    (".rs", "Parser.limit", "const fn limit() -> usize { 3 }"),
    (
        ".rs",
        "Parser.fmt",
        'fn fmt(&self, f: &mut fmt::Formatter<\'_>) -> fmt::Result { write!(f, "{}}}", 1) }',
    ),
    (".rs", "Walk.walk", "fn walk(&self) -> u8;"),
    (".rs", "Walk.twice", "fn twice(&self) -> u8 { self.walk() * 2 }"),
    (".rs", "inner.login", "pub async fn login() {}"),
    (".rs", "say", 'macro_rules! say { ($x:expr) => { println!("{}", $x) }; }'),
    (".rs", "COUNT", "static mut COUNT: u32 = { 1 + 2 };"),
    (".java", "Auth.SIZES", "private static final int[] SIZES = {1, 2};"),
    (".java", "Auth.name", 'private String name = "}", other;'),
    (".java", "Auth.Auth", "public Auth(String name) { this.name = name; }"),
    (".java", "size", "abstract int size();"),
    (".java", "Inner.run", "void run() { }"),
    (".java", "Auth.Colour.next", "Colour next() { return RED; }"),
    (".java", "Point.sum", "int sum() { return x + y; }"),
    (".java", "Mark.value", "int value() default 1;"),
]


@pytest.mark.parametrize(("suffix", "name", "text"), EXPECTED, ids=lambda value: value if len(value) < 20 else "")
def test_a_symbol_is_its_own_text(suffix: str, name: str, text: str) -> None:
    assert find(suffix, FILES[suffix], name) == text


def test_overloads_count_together() -> None:
    text = find(".java", JAVA, "Auth.login") or ""
    assert (text.startswith("@Override"), text.endswith("public void login() { }"), text.count("login(")) == (
        True,
        True,
        2,
    )


def test_a_class_is_all_of_its_body() -> None:
    assert (find(".java", JAVA, "Auth") or "").startswith('@Service("x")\n@Conditional')
    assert (find(".java", JAVA, "Auth") or "").endswith("default 1; }\n}")
    assert (find(".ts", SCRIPT, "Auth") or "").startswith("@Injectable")
    assert (find(".ts", SCRIPT, "Auth") or "").endswith("yield key\n  }\n}")


@pytest.mark.parametrize("suffix", FILES)
def test_there_is_no_text_for_a_name_that_is_not_there(suffix: str) -> None:
    assert find(suffix, FILES[suffix], "nowhere") is None


def test_local_variables_are_no_symbols() -> None:
    assert find(".py", "def f():\n    x = 1\n", "x") is None


def test_other_languages_have_no_symbols() -> None:
    assert find(".c", "int main() {}", "main") is None


@pytest.mark.parametrize(("suffix", "name"), [(".py", "login"), (".ts", "Auth.login"), (".go", "Server.Login")])
def test_line_ends_byte_order_mark_and_trailing_blanks_make_no_difference(suffix: str, name: str) -> None:
    source = FILES[suffix]
    assert find(suffix, "\ufeff" + source.replace("\n", "  \r\n"), name) == find(suffix, source, name)


@pytest.mark.parametrize("suffix", FILES)
def test_an_unrelated_edit_changes_no_other_symbol(suffix: str) -> None:
    """A comment, a string full of brackets or a function more: every symbol keeps its text."""
    more = {
        ".py": '\n# def login(\nodd = "def login(): {"\ndef unrelated(): pass\n',
        ".ts": "\n// class Auth {\nconst odd = '}{'\nfunction unrelated() {}\n",
        ".go": '\n// func Login( {\nvar odd = "}{"\nfunc unrelated() {}\n',
        ".rs": '\n// fn parse {\nconst ODD: &str = "}{";\nfn unrelated() {}\n',
        ".java": '\n// class Auth {\nclass Unrelated { String odd = "}{"; }\n',
    }[suffix]
    for of, name, _ in EXPECTED:
        if of == suffix:
            assert find(suffix, FILES[suffix] + more, name) == find(suffix, FILES[suffix], name)


@pytest.mark.parametrize(
    ("suffix", "source"),
    [
        (".py", "def login(:\n"),
        (".py", "x = '\0'"),
        (".py", "(" * 5000),
        (".ts", "function login() {"),
        (".ts", "const a = `open"),
        (".ts", "function login() { ) }"),
        (".go", "func Login() { `open }"),
        (".rs", "fn login() { /* open }"),
        (".rs", 'fn login() { r#"open" }'),
        (".java", 'class A { String a = """open; }'),
    ],
)
def test_what_somebody_is_editing_is_unparsable(suffix: str, source: str) -> None:
    with pytest.raises(Unparsable):
        find(suffix, source, "login")


def test_semicolons_are_not_needed_in_scripts() -> None:
    source = textwrap.dedent("""\
        const a = b
          .then((x) => x)
          .catch(() => {
            oops()
          })
        const c = {
          d: 1
        }
        class E
          extends F {
          g = 1
          h() {}
        }
        let i
        """)
    assert [find(".js", source, name) for name in ("a", "c", "E.g", "E.h", "i")] == [
        "const a = b\n  .then((x) => x)\n  .catch(() => {\n    oops()\n  })",
        "const c = {\n  d: 1\n}",
        "g = 1",
        "h() {}",
        "let i",
    ]


PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    '"',
    "'",
    "`",
    "${",
    "/",
    "//",
    "/*",
    "*/",
    "\\",
    "\n",
    "=",
    "=>",
    ";",
    ",",
    " ",
]
WORDS = [
    "function f",
    "class A",
    "fn f",
    "impl A for B",
    "func f",
    "type (",
    "const x",
    "@X",
    "#[a]",
    "def f",
    "r#",
    "<",
]


@given(st.lists(st.sampled_from(PIECES + WORDS), max_size=60), st.sampled_from([*FILES, ".tsx"]))
def test_nothing_in_a_file_breaks_the_looking(pieces: list[str], suffix: str) -> None:
    source = "".join(pieces)
    for name in ("f", "A", "x"):
        try:
            found = find(suffix, source, name)
        except Unparsable:
            continue
        assert found is None or found.strip()
