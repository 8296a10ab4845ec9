"""The example units in systemd/ and launchd/: `python -m tests.service.examples` writes them anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from supervisor.units import ServiceTerms, launchd_plist, systemd_unit

REPO = Path(__file__).resolve().parents[2]
PREFIX = "/opt/freshlane"

SYSTEMD = ServiceTerms(
    program=(f"{PREFIX}/bin/freshlane",),
    settle=(
        f"{PREFIX}/bin/python",
        "-I",
        "-S",
        f"{PREFIX}/lib/python3.11/site-packages/supervisor/shell/service/settle.py",
    ),
    config="/etc/freshlane/lanes.yaml",
    is_system=True,
    stop_s=122,
    user="freshlane",
    home="/var/lib/freshlane",
    environment={"PATH": f"{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin", "HF_HOME": "/var/cache/huggingface"},
    environment_file="/etc/freshlane/env",
    refusal_file="/var/lib/freshlane/.local/state/freshlane/service-refusal.json",
)
SYSTEMD_USER = replace(
    SYSTEMD,
    is_system=False,
    user=None,
    config="/home/ann/.config/freshlane/lanes.yaml",
    environment={"PATH": f"{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin"},
    environment_file="/home/ann/.config/freshlane/env",
    refusal_file="/home/ann/.local/state/freshlane/service-refusal.json",
)
LAUNCHD = replace(
    SYSTEMD_USER,
    home="/Users/ann",
    config="/Users/ann/.config/freshlane/lanes.yaml",
    environment={"PATH": f"{PREFIX}/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
    environment_file="",
    log_folder="/Users/ann/Library/Logs/freshlane",
    refusal_file="/Users/ann/Library/Application Support/freshlane/service-refusal.json",
)
LAUNCHD_SYSTEM = replace(
    LAUNCHD,
    is_system=True,
    user="ann",
    environment={**LAUNCHD.environment, "HOME": "/Users/ann"},
    log_folder="/Library/Logs/freshlane",
)


def examples() -> dict[Path, bytes]:
    """Each example's place and content."""
    return {
        REPO / "systemd/freshlane.service": systemd_unit(SYSTEMD).encode(),
        REPO / "systemd/user/freshlane.service": systemd_unit(SYSTEMD_USER).encode(),
        REPO / "launchd/dev.freshlane.daemon.plist": launchd_plist(LAUNCHD),
        REPO / "launchd/system/dev.freshlane.daemon.plist": launchd_plist(LAUNCHD_SYSTEM),
    }


if __name__ == "__main__":
    for path, content in examples().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
