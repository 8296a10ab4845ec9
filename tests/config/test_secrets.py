"""Keys, headers and environments never show: not in a repr, not in an error."""

from __future__ import annotations

import pytest

from tests.config.loading import loaded, problems

SECRET = "hunter2-0123456789"

GOOD = f"""\
    api_keys: [{SECRET}]
    admin_keys: ["${{env:KEY}}"]
    on_recycle: {{webhook: "https://hooks.example/{SECRET}"}}
    lanes:
      a:
        command: [s, "{{port}}"]
        headers: {{Authorization: "Bearer {SECRET}"}}
        env: {{TOKEN: {SECRET}}}
    """


def test_no_secret_is_in_a_repr_or_a_dump_of_the_settings() -> None:
    settings = loaded(GOOD, {"KEY": SECRET}).settings
    assert settings.keys_of_clients() == settings.keys_of_admins() == (SECRET,)
    lane = settings.lanes["a"]
    for shown in (repr(settings), str(settings), repr(lane), str(lane.fingerprint_parts()), lane.worker_key()):
        assert SECRET not in shown
    for keys in (settings.api_keys, settings.admin_keys, lane.headers):
        assert SECRET not in repr(keys)


@pytest.mark.parametrize(
    "text",
    [
        f"api_keys: {SECRET}",
        f"api_keys: {{{SECRET}: x}}",
        f"api_keys: [[{SECRET}]]",
        f'api_keys: ["{SECRET}\\n"]',
        f"api_kyes: [{SECRET}]",
        f"api_keys: [*{SECRET}]",
        f"api_keys: [!{SECRET} x]",
        f"api_keys: [!!{SECRET} x]",
        f"api_keys: [!{SECRET}!x y]",
        f'api_keys: ["{SECRET}]',
        f"api_keys: [{SECRET}",
        f"api_keys: [{SECRET}: x: y]",
        f"admin_keys: {SECRET}",
        f"on_recycle: {{webhook: {SECRET}}}",
        f"lanes: {{a: {{model: m, headers: {SECRET}}}}}",
        f"lanes: {{a: {{model: m, headers: [{SECRET}]}}}}",
        f'lanes: {{a: {{model: m, headers: {{A: "{SECRET}\\n"}}}}}}',
        f"lanes: {{a: {{model: m, env: {SECRET}}}}}",
        f'lanes: {{a: {{model: m, env: {{A: ["{SECRET}"]}}}}}}',
        'lanes: {a: {model: m, max_queue: "${env:KEY}"}}',
        'lanes: {a: {model: m, kind: "${env:KEY}"}}',
        'lanes: {a: {attach: "${env:KEY}"}}',
        'listen: "${env:KEY}"',
    ],
)
def test_no_secret_is_in_the_text_of_an_error(text: str) -> None:
    found = problems(text, {"KEY": SECRET})
    assert found
    shown = "".join(str(problem) for problem in found)
    assert SECRET not in shown.replace(f'api_keys."{SECRET}"', "").replace(f"api_keys.{SECRET}", "")


def test_an_ambiguous_secret_is_refused_without_being_shown() -> None:
    (found,) = problems("api_keys: [0123]\nlanes: {a: {model: m}}")
    assert "0123" not in str(found)
    assert "83" not in str(found)


def test_a_number_as_a_key_is_refused_without_being_shown() -> None:
    (found,) = problems("api_keys: [123456]\nlanes: {a: {model: m}}")
    assert "123456" not in str(found)
