"""Everything between the file lanes.yaml and frozen settings."""

from __future__ import annotations

from supervisor.config.load import Loaded, load
from supervisor.config.machine import lane_machine_warnings, machine_warnings
from supervisor.config.problems import ConfigError, Problem
from supervisor.config.reference import config_reference
from supervisor.config.schema import schema
from supervisor.config.terms import lane_terms

__all__ = [
    "ConfigError",
    "Loaded",
    "Problem",
    "config_reference",
    "lane_machine_warnings",
    "lane_terms",
    "load",
    "machine_warnings",
    "schema",
]
