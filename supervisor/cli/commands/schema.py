"""``freshlane schema``"""

from __future__ import annotations

from supervisor.cli.terminal import print_json
from supervisor.config import schema as schema_of_lanes


def schema() -> None:
    """Print the JSON schema of lanes.yaml, for editors."""
    print_json(schema_of_lanes())
