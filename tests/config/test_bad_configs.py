"""Every kind of mistake in lanes.yaml: its line, its key and the words that help."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.config.loading import problems


class Bad(NamedTuple):
    kind: str
    text: str | bytes
    line: int | None
    key: str
    words: tuple[str, ...]


def lane(body: str) -> str:
    """A file whose lane `a` starts in line 2, so that the body starts in line 3."""
    return "lanes:\n  a:\n" + "".join(f"    {row}\n" for row in body.splitlines())


def ours(body: str) -> str:
    """The same with our engine in line 3: the body starts in line 4."""
    return lane("model: m\n" + body)


def top(body: str) -> str:
    """A file with a good lane; the body starts in line 3."""
    return "lanes:\n  a: {model: m}\n" + body + "\n"


BAD = [
    # What is no YAML of ours.
    Bad("an empty file", "", 1, "lanes", ("at least one lane",)),
    Bad("only a comment", "# nothing\n", 1, "lanes", ("at least one lane",)),
    Bad("no lanes", "listen: 127.0.0.1:1\n", 1, "lanes", ("at least one lane",)),
    Bad("empty lanes", "log: {keep: 2}\nlanes: {}\n", 2, "lanes", ("at least one lane",)),
    Bad("lanes left blank", "lanes:\n", 1, "lanes", ("at least one lane",)),
    Bad("lanes as a list", "lanes: [a]\n", 1, "lanes", ("keys and values",)),
    Bad("a list as the file", "- a\n- b\n", 1, "", ("keys and values",)),
    Bad("a word as the file", "\nfreshlane\n", 2, "", ("keys and values",)),
    Bad("not UTF-8", b"lanes:\n  a: {model: \xff}\n", 2, "", ("UTF-8",)),
    Bad("UTF-16", "lanes: {a: {model: m}}".encode("utf-16"), 1, "", ("UTF-8",)),
    Bad("a control character", "lanes:\n  a: {model: 'x\x07'}\n", 2, "", ("character", "remove")),
    Bad("a huge file", b"#" * 300_000, 1, "", ("256 KiB",)),
    Bad("a tab for indentation", "lanes:\n\ta: {model: m}\n", 2, "", ("tab", "spaces")),
    Bad("an unclosed bracket", "lanes:\n  a: {model: m\n", 3, "", ("not YAML",)),
    Bad("an unclosed quote", 'lanes:\n  a: {model: "m}\n', 3, "", ("not YAML",)),
    Bad("bad indentation", "lanes:\n  a:\n    model: m\n   kind: chat\n", 4, "", ("not YAML",)),
    Bad("an impossible escape", 'lanes: {a: {model: "\\UFFFFFFFF"}}\n', 1, "", ("not YAML", "escape")),
    Bad("half a character", 'lanes: {a: {model: "\\ud800"}}\n', 1, "lanes.a.model", ("surrogate",)),
    Bad("two documents", "lanes: {a: {model: m}}\n---\nlanes: {}\n", 2, "", ("second document",)),
    Bad("deep nesting", "lanes: " + "[" * 5000, 1, "lanes[0][0]", ("nested deeper",)),
    Bad("an anchor", top("log: &x {keep: 2}"), 3, "log", ("anchor", "remove")),
    Bad("an alias", ours("canary: *x"), 4, "lanes.a.canary", ("alias", "defaults")),
    Bad("a merge key", ours("canary: {<<: {every: 5m}}"), 4, "lanes.a.canary.<<", ("not plainly text",)),
    Bad("a tag", ours("kind: !!python/name:os.system chat"), 4, "lanes.a.kind", ("tag", "remove")),
    Bad("a key that is a list", top("? [a, b]\n: 1"), 3, "", ("key that is not text",)),
    # What YAML 1.1 would turn into something else.
    Bad("a bare time", ours("served_model: 3:30"), 4, "lanes.a.served_model", ("3:30", "210", "quotes")),
    Bad("a leading zero", ours("max_queue: 010"), 4, "lanes.a.max_queue", ("010", "number 8", "quotes")),
    Bad("a bare yes", ours("served_model: yes"), 4, "lanes.a.served_model", ("bare yes", "true or false")),
    Bad("a bare No", ours("kind: No"), 4, "lanes.a.kind", ("bare No", "true or false")),
    Bad("a bare off as text", ours("served_model: off"), 4, "lanes.a.served_model", ("must be text", "quotes")),
    Bad("a bare date", ours("served_model: 2026-01-02"), 4, "lanes.a.served_model", ("2026-01-02", "date")),
    Bad("a hexadecimal number", ours("max_queue: 0x10"), 4, "lanes.a.max_queue", ("0x10", "16")),
    Bad("digits with underscores", ours("max_queue: 1_000"), 4, "lanes.a.max_queue", ("1_000", "1000")),
    Bad("an exponent", ours("max_queue: 1e3"), 4, "lanes.a.max_queue", ("1e3", "ambiguous")),
    Bad("not a number", ours("degraded: {below: .nan}"), 4, "lanes.a.degraded.below", (".nan",)),
    Bad("a lane called on", "lanes:\n  on: {model: m}\n", 2, "lanes.on", ("quotes",)),
    Bad("a lane called 7", "lanes:\n  7: {model: m}\n", 2, "lanes.7", ("quotes",)),
    Bad("a number as text", ours("served_model: 7"), 4, "lanes.a.served_model", ("must be text", "quotes", "got 7")),
    Bad("true as text", ours("env: {DEBUG: true}"), 4, "lanes.a.env.DEBUG", ("must be text", "quotes")),
    # Keys.
    Bad("a typo in a block", ours("canary: {evry: 5m}"), 4, "lanes.a.canary.evry", ('did you mean "every"?',)),
    Bad("a typo at the top", top("listne: x"), 3, "listne", ('did you mean "listen"?',)),
    Bad("a typo in a lane", ours("aliasses: [b]"), 4, "lanes.a.aliasses", ('did you mean "aliases"?',)),
    Bad("a dash for an underscore", ours("drain-timeout: 5m"), 4, "lanes.a.drain-timeout", ('"drain_timeout"?',)),
    Bad("a key of another block", ours("every: 5m"), 4, "lanes.a.every", ('did you mean "canary.every"?',)),
    Bad("a lane's key at the top", top("lane: {}"), 3, "lane", ('did you mean "lanes"?',)),
    Bad("a daemon's key in a lane", ours("max_body: 1MB"), 4, "lanes.a.max_body", ("top of the file",)),
    Bad("a lane's block at the top", top("canary: {}"), 3, "canary", ("a lane", "`defaults`")),
    Bad("a key unlike any of a lane", ours("zzz: 1"), 4, "lanes.a.zzz", ("unknown key", "docs/config.md")),
    Bad("a key like no other", ours("hang: {zzz: 1}"), 4, "lanes.a.hang.zzz", ("unknown key", "after, pulse")),
    Bad("a name inside the lane", ours("name: b"), 4, "lanes.a.name", ("unknown key",)),
    Bad("a key twice", ours("kind: chat\nkind: chat"), 5, "lanes.a.kind", ("written twice", "line 4")),
    Bad("a lane twice", "lanes:\n  a: {model: m}\n  a: {model: n}\n", 3, "lanes.a", ("written twice", "line 2")),
    Bad("a typo in defaults", "defaults:\n  knd: chat\n" + top(""), 2, "defaults.knd", ('"kind"?',)),
    # Types and units.
    Bad("a duration without unit", ours("drain_timeout: 90"), 4, "lanes.a.drain_timeout", ("unit", "90s", "got 90")),
    Bad("an unknown unit", ours("drain_timeout: 5min"), 4, "lanes.a.drain_timeout", ("not a duration", '"5min"')),
    Bad("a negative duration", ours("drain_timeout: -5s"), 4, "lanes.a.drain_timeout", ("not a duration",)),
    Bad("no time at all", ours("canary: {every: 0s}"), 4, "lanes.a.canary.every", ("more than 0s",)),
    Bad("a thousand years", ours("drain_timeout: 365000d"), 4, "lanes.a.drain_timeout", ("too long", "3650d")),
    Bad("a word for a duration", ours("drain_timeout: auto"), 4, "lanes.a.drain_timeout", ("not a duration",)),
    Bad("a word for auto", ours("stop_timeout: atuo"), 4, "lanes.a.stop_timeout", ("not a duration", "or auto")),
    Bad("a size without unit", top("max_body: 64"), 3, "max_body", ("unit", "64MB")),
    Bad("a size in a wrong unit", ours("memory: {limit: 24gb}"), 4, "lanes.a.memory.limit", ("not a size", "24GB")),
    Bad("part of a byte", ours("memory: {limit: 0.5B}"), 4, "lanes.a.memory.limit", ("whole number of bytes",)),
    Bad("a count that is none", ours("max_inflight: many"), 4, "lanes.a.max_inflight", ("not a count", "280k")),
    Bad("half a request", ours("max_inflight: 1.5"), 4, "lanes.a.max_inflight", ("whole number",)),
    Bad("no requests", ours("max_inflight: 0"), 4, "lanes.a.max_inflight", ("more than 0",)),
    Bad("a negative count", ours("max_queue: -1"), 4, "lanes.a.max_queue", ("not a count", "got -1")),
    Bad("one token", ours("canary: {max_tokens: 1}"), 4, "lanes.a.canary.max_tokens", ("at least 2",)),
    Bad("a share beyond all", ours("canary: {budget: 101%}"), 4, "lanes.a.canary.budget", ("at most 100%",)),
    Bad("a share of nothing", ours("canary: {budget: 0%}"), 4, "lanes.a.canary.budget", ("more than 0",)),
    Bad("a ratio beyond 1", ours("degraded: {below: 1.2}"), 4, "lanes.a.degraded.below", ("between 0 and 1",)),
    Bad("a ratio in per cent", ours("degraded: {below: 89%}"), 4, "lanes.a.degraded.below", ("not a ratio", "0.89")),
    Bad("an unknown kind", ours("kind: chta"), 4, "lanes.a.kind", ("one of chat", 'did you mean "chat"?')),
    Bad("an unknown preset", lane("preset: ollama"), 3, "lanes.a.preset", ("one of omlx", '"ollama"')),
    Bad("a bare off that is no choice", ours("kill: off"), 4, "lanes.a.kill", ("one of if_hung, never",)),
    Bad("a list for a word", ours("kind: [chat]"), 4, "lanes.a.kind", ("one of chat",)),
    Bad("a word for a list", ours("aliases: b"), 4, "lanes.a.aliases", ("must be a list",)),
    Bad("a word for a command", lane('command: "omlx serve {port}"'), 3, "lanes.a.command", ("must be a list",)),
    Bad("a number for a block", ours("canary: 5"), 4, "lanes.a.canary", ("keys and values", "got 5")),
    Bad("a block left blank", ours("canary:"), 4, "lanes.a.canary", ("empty", "remove")),
    Bad("a lane left blank", "lanes:\n  a:\n", 2, "lanes.a", ("empty", "model")),
    Bad("a word for a lane", "lanes:\n  a: qwen\n", 2, "lanes.a", ("keys and values",)),
    Bad("an item left blank", ours("aliases:\n  - b\n  -"), 6, "lanes.a.aliases[1]", ("empty",)),
    Bad("a placeholder without quotes", lane("command: [s, {port}]"), 3, "lanes.a.command[1]", ("quotes", '"{port}"')),
    Bad("a line break in a word", ours('served_model: "a\\nb"'), 4, "lanes.a.served_model", ("control character",)),
    Bad("an alias of two words", ours("aliases: [a b]"), 4, "lanes.a.aliases[0]", ("one word",)),
    Bad("no prompt sizes", ours("canary: {prompt_tokens: []}"), 4, "lanes.a.canary.prompt_tokens", ("empty",)),
    Bad("a prompt size twice", ours("canary: {prompt_tokens: [9, 9]}"), 4, "lanes.a.canary.prompt_tokens", ("twice",)),
    Bad("a port that is none", ours("port: 70000"), 4, "lanes.a.port", ("65535",)),
    Bad("a relative health path", ours("health: health"), 4, "lanes.a.health", ("/health",)),
    Bad("a header that is none", ours('headers: {"a b": x}'), 4, 'lanes.a.headers."a b"', ("name of a header",)),
    # The window.
    Bad("an odd window", ours('recycle: {window: "1-6"}'), 4, "lanes.a.recycle.window", ("01:00-06:00", '"1-6"')),
    Bad("a 25th hour", ours('recycle: {window: "01:00-25:00"}'), 4, "lanes.a.recycle.window", ("23:59",)),
    Bad("no such zone", ours('recycle: {window: "01:00-06:00 Mars"}'), 4, "lanes.a.recycle.window", ("time zone",)),
    Bad("a window of no time", ours('recycle: {window: "01:00-01:00"}'), 4, "lanes.a.recycle.window", ("empty",)),
    # Between keys of a lane.
    Bad("nothing to serve", lane("kind: chat"), 2, "lanes.a", ("`model`, `command`, `preset` or `attach`",)),
    Bad("an empty command", lane("command: []"), 3, "lanes.a.command", ("empty", "program")),
    Bad("a command without port", lane("command: [omlx, serve]"), 3, "lanes.a.command", ("{port}", "port: N")),
    Bad(
        "an unknown placeholder", lane('command: [s, "{prt}", "{port}"]'), 3, "lanes.a.command[1]", ("{prt}", "{port}")
    ),
    Bad("one in the environment", ours('env: {A: "{hom}"}'), 4, "lanes.a.env.A", ("{hom}", "{state_dir}")),
    Bad("no model to fill in", lane('command: [s, "{model}{port}"]'), 3, "lanes.a.command[1]", ("needs `model`",)),
    Bad("a preset without model", lane("preset: vllm"), 3, "lanes.a.preset", ("needs `model`",)),
    Bad("attach and command", lane('attach: http://h\ncommand: [s, "{port}"]'), 4, "lanes.a.command", ("attach",)),
    Bad("attach and model", lane("attach: http://h\nmodel: m"), 4, "lanes.a.model", ("served_model",)),
    Bad("attach and env", lane("attach: http://h\nenv: {A: b}"), 4, "lanes.a.env", ("someone else",)),
    Bad("attach on demand", lane("attach: http://h\nstart: on_demand"), 4, "lanes.a.start", ("someone else",)),
    Bad("attach and overlap", lane("attach: http://h\nreplace: overlap"), 4, "lanes.a.replace", ("someone else",)),
    Bad("attach to no URL", lane("attach: localhost:8000"), 3, "lanes.a.attach", ("http://127.0.0.1:8000",)),
    Bad("a restart of our own", ours("restart_command: [x]"), 4, "lanes.a.restart_command", ("`attach`",)),
    Bad("overlap on one port", ours("port: 80\nreplace: overlap"), 5, "lanes.a.replace", ("port", "in_place")),
    Bad("severe above below", ours("degraded: {severe: 0.95}"), 4, "lanes.a.degraded.severe", ("0.95", "0.89")),
    Bad("a draft without model", ours("speculation: {method: dflash}"), 4, "lanes.a.speculation.method", ("draft",)),
    Bad("an equals sign in a name", ours("env: {A=B: c}"), 4, "lanes.a.env.A=B", ("environment variable",)),
    # Between lanes, and the daemon's own keys.
    Bad("an alias that is a lane", top("  b: {model: n, aliases: [a]}"), 3, "lanes.b.aliases[0]", ("lane a",)),
    Bad("an alias twice", ours("aliases: [b, b]"), 4, "lanes.a.aliases[1]", ("this lane",)),
    Bad("an alias of its own", ours("aliases: [a]"), 4, "lanes.a.aliases[0]", ("this lane",)),
    Bad("a served name taken", top("  b: {model: n, serves: {a: x}}"), 3, "lanes.b.serves.a", ("lane a",)),
    Bad("lanes that differ by case", top("  A: {model: n}"), 3, "lanes.A", ("case",)),
    Bad("a lane name with a slash", "lanes:\n  a/b: {model: m}\n", 2, "lanes.a/b", ("lane name", "aliases")),
    Bad("a port twice", "lanes:\n  a: {model: m, port: 9}\n  b: {model: m, port: 9}\n", 3, "lanes.b.port", ("lane a",)),
    Bad("the daemon's port", "listen: localhost:9\nlanes:\n  a: {model: m, port: 9}\n", 3, "lanes.a.port", ("daemon",)),
    Bad("open without keys", top("listen: 0.0.0.0:7411"), 3, "listen", ("beyond this machine", "api_keys")),
    Bad("a listen without port", top("listen: 127.0.0.1"), 3, "listen", ("host:port", "127.0.0.1:7411")),
    Bad("a listen port that is none", top("listen: 127.0.0.1:99999"), 3, "listen", ("65535",)),
    Bad("an origin with a path", top("allowed_origins: [https://a.b/c]"), 3, "allowed_origins[0]", ("path",)),
    Bad("a host with a scheme", top("allowed_hosts: [https://a]"), 3, "allowed_hosts[0]", ("scheme",)),
    Bad("a webhook that is no URL", top("on_recycle: {webhook: hook}"), 3, "on_recycle.webhook", ("https://",)),
    # From outside.
    Bad("an unset variable", top('api_keys: ["${env:NOPE}"]'), 3, "api_keys[0]", ("NOPE", "not set", ":-")),
    Bad("a missing file", top('api_keys: ["${file:nope}"]'), 3, "api_keys[0]", ("nope", "does not exist")),
    Bad("an unfinished reference", ours('cwd: "${env:HOME"'), 4, "lanes.a.cwd", ("unfinished", "${env:NAME}")),
    Bad("a reference to no name", ours('cwd: "${env:}"'), 4, "lanes.a.cwd", ("names no environment variable",)),
]


@pytest.mark.parametrize("bad", BAD, ids=[bad.kind.replace(" ", "-") for bad in BAD])
def test_a_mistake_is_told_with_its_line_its_key_and_its_remedy(bad: Bad) -> None:
    found = problems(bad.text)
    assert [(problem.line, problem.key) for problem in found] == [(bad.line, bad.key)], [str(p) for p in found]
    for words in bad.words:
        assert words in found[0].text


def test_the_text_of_a_problem_reads_as_one_line() -> None:
    (problem,) = problems(ours("canary: {evry: 5m}"))
    assert str(problem) == 'lanes.yaml:4: lanes.a.canary.evry: unknown key; did you mean "every"?'
    assert problem.lane == "a"


def test_five_errors_in_one_file_give_exactly_five_sorted_by_line() -> None:
    found = problems("""\
        listen: 0.0.0.0:7411
        log: {levl: info}
        defaults:
          canary: {every: 5}
        lanes:
          a: {model: m}
          b: {model: n, kind: yes}
          c: {command: [serve]}
        """)
    assert [(problem.line, problem.key) for problem in found] == [
        (1, "listen"),
        (2, "log.levl"),
        (4, "defaults.canary.every"),
        (7, "lanes.b.kind"),
        (8, "lanes.c.command"),
    ]


def test_a_mistake_in_defaults_is_told_once_however_many_lanes_there_are() -> None:
    found = problems("""\
        defaults: {canary: {evry: 5m}, env: {A: 1}}
        lanes: {a: {model: m}, b: {model: m}, c: {model: m, env: {A: x}}}
        """)
    assert [problem.key for problem in found] == ["defaults.canary.evry", "defaults.env.A"]


def test_a_refused_value_is_not_complained_about_twice() -> None:
    found = problems("lanes:\n  a:\n    model: yes\n    degraded: {below: 0x1}\n    aliases: [no]\n")
    assert [problem.line for problem in found] == [3, 4, 5]
