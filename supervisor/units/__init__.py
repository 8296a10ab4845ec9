"""The texts that service managers read. Pure: what to say is decided here, written and loaded elsewhere."""

from __future__ import annotations

from supervisor.units.launchd import launchd_plist
from supervisor.units.systemd import systemd_unit
from supervisor.units.terms import NAME, ServiceTerms

__all__ = ["NAME", "ServiceTerms", "launchd_plist", "systemd_unit"]
