# ruff: noqa: SIM905 - long lists of words read better as text
"""Seed prompts by domain, made here: templates, and the functions and docstrings of Python's own library."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path

DOMAINS = ("chat", "code", "copy", "edit", "json", "free")
"""`free` has no prompt: the model makes up the user's turn as well."""
MODULES = (
    "argparse bisect calendar cmd codecs collections/__init__ configparser contextlib copy csv dataclasses "
    "datetime difflib doctest enum fileinput fnmatch fractions functools getopt glob gzip hashlib heapq "
    "html/parser http/client inspect io json/encoder json/decoder logging/__init__ mailbox mimetypes netrc "
    "ntpath numbers operator optparse pdb pickle pkgutil platform plistlib posixpath pprint profile queue "
    "quopri random reprlib sched selectors shelve shlex shutil smtplib socket statistics string subprocess "
    "tarfile tempfile textwrap threading timeit token tokenize trace traceback typing unittest/case "
    "urllib/parse urllib/request uuid warnings wave weakref xml/etree/ElementTree zipfile/__init__ "
).split()
TOPICS = (
    "the ocean|photosynthesis|a good night's sleep|learning the piano|the Roman empire|black holes|growing tomatoes|"
    "the water cycle|public speaking|electric cars|climbing a mountain|the printing press|vaccines|inflation|"
    "writing a poem|chess openings|bread baking|the moon landing|renewable energy|time management|volcanoes|"
    "the French revolution|machine learning|healthy breakfasts|bees|the internet|job interviews|recycling|jazz|"
    "coral reefs|the human heart|budgeting|gravity|folk tales|earthquakes|meditation|bicycles|the Silk Road|"
    "antibiotics|friendship|deserts|databases|penguins|tea|architecture|running a marathon|the stock market|robots"
).split("|")
ASKS = (
    "Explain {} to a child.|What should I know about {}?|Write a short essay about {}.|Give me five facts about {}.|"
    "Why does {} matter?|Write a short story that has to do with {}.|List the advantages and disadvantages of {}.|"
    "How did {} change over time?|Write an email to a friend about {}.|What are common mistakes people make with {}?|"
    "Summarize the history of {} in three paragraphs.|Give me a step by step plan to learn more about {}.|"
    "Write a dialogue between two people who disagree about {}.|Compare {} with {}.|Write a poem about {}."
).split("|")
TASKS = (
    "reverses a string|checks whether a number is prime|sorts a list with merge sort|counts the words in a text|"
    "computes the Fibonacci numbers|finds the largest element of a list|removes duplicates from a list|"
    "reads a CSV file and sums a column|checks whether a word is a palindrome|merges two dictionaries|"
    "flattens a nested list|computes the factorial of a number|parses a date|finds all files in a folder|"
    "searches a sorted list by bisection|computes the greatest common divisor|converts Celsius to Fahrenheit|"
    "validates an email address|groups words by their first letter|implements a stack|implements a queue|"
    "implements a linked list|multiplies two matrices|finds the shortest path in a graph|counts vowels|"
    "generates random passwords|rotates a list|computes a moving average|downloads a web page|draws a triangle of "
    "stars|finds anagrams|transposes a matrix|encodes a text with the Caesar cipher|solves a quadratic equation|"
    "computes the edit distance of two strings|simulates rolling dice|prints a calendar|caches results"
).split("|")
LANGUAGES = ("Python", "Python", "Python", "JavaScript", "Java", "C", "C++", "Rust", "Go", "SQL")
CODE_ASKS = (
    "Write a {0} function that {1}.|Write a {0} program that {1}. Add comments.|Show me how one {1} in {0}: code only.|"
    "I need {0} code that {1}, with an example of its use.|Write a class in {0} that {1}, and tests for it."
).split("|")
EDITS = (
    "Add type hints to this function:|Rename the arguments of this function to a, b and c:|Add a docstring:|"
    "Add comments to each line of this code:|Add error handling to this code:|Rewrite this with shorter names:"
).split("|")
PROSE_EDITS = (
    "Correct the spelling of this text:|Rewrite this in simple words:|Summarize this text:|Make this text more "
    "formal:|Turn this text into bullet points:"
).split("|")
COPIES = (
    "Repeat the following exactly:|Copy this text word for word:|Print this code again, unchanged:|"
    "Return the following without any changes:"
).split("|")
NAMES = "Ada Ben Clara David Emma Felix Grace Hugo Iris Jonas Kira Liam Mia Noah Olga Paul Rosa Sam Tara Viktor".split()
CITIES = "Paris Berlin Oslo Madrid Rome Vienna Lisbon Prague Dublin Athens Tokyo Lima Cairo Delhi Boston".split()


def prompt(domain: str, dice: random.Random) -> str:
    """One user's turn of a domain; "" for `free`."""
    makers: dict[str, Callable[[random.Random], str]] = {
        "chat": _chat,
        "code": _code,
        "copy": _copy,
        "edit": _edit,
        "json": _json,
        "free": lambda _: "",
    }
    return makers[domain](dice)


def _chat(dice: random.Random) -> str:
    return dice.choice(ASKS).format(*dice.sample(TOPICS, 2))


def _code(dice: random.Random) -> str:
    if dice.random() < 0.3:
        return f"Explain what this code does:\n\n{dice.choice(snippets())}"
    return dice.choice(CODE_ASKS).format(dice.choice(LANGUAGES), dice.choice(TASKS))


def _copy(dice: random.Random) -> str:
    return f"{dice.choice(COPIES)}\n\n{_text(dice)}"


def _edit(dice: random.Random) -> str:
    if dice.random() < 0.6:
        return f"{dice.choice(EDITS)}\n\n{dice.choice(snippets())}"
    return f"{dice.choice(PROSE_EDITS)}\n\n{dice.choice(paragraphs())}"


def _json(dice: random.Random) -> str:
    people = [
        f"{name} is {dice.randrange(18, 80)} years old and lives in {dice.choice(CITIES)}"
        for name in dice.sample(NAMES, dice.randrange(1, 6))
    ]
    if dice.random() < 0.5:
        return "Give this as a JSON list of objects with the keys name, age and city: " + ". ".join(people) + "."
    return f"Make a JSON object that describes {dice.choice(TOPICS)}, with the keys name, kind, facts and year."


def _text(dice: random.Random) -> str:
    return dice.choice(snippets() if dice.random() < 0.5 else paragraphs())


@cache
def snippets() -> list[str]:
    """Short functions of Python's library."""
    return [text for text, node in _functions() if 4 <= text.count("\n") <= 20 and len(text) < 900 and node is not None]


@cache
def paragraphs() -> list[str]:
    """Paragraphs of prose from the docstrings of Python's library."""
    found = []
    for _, node in _functions():
        for piece in (ast.get_docstring(node) or "").split("\n\n"):
            words = piece.replace("\n", " ").split()
            if 20 <= len(words) <= 120 and ">>>" not in piece:
                found.append(" ".join(words))
    return found


@cache
def _functions() -> list[tuple[str, ast.FunctionDef]]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for module in MODULES:
        file = folder / f"{module}.py"
        if not file.is_file():
            continue
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
                found.append(("\n".join(line[node.col_offset :] for line in lines), node))
    return found
