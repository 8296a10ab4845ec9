"""One device for all lanes: who waits for a canary, and whom a canary gives way to."""

from __future__ import annotations

from supervisor.core.samples import Void
from supervisor.shell.device import Device


class Lane:
    """What the device sees of a lane."""

    def __init__(self, device: Device, name: str) -> None:
        self.inflight = 0
        self.waits_for: str | None = None
        device.join(name, lambda: self.inflight, self._pause)

    def _pause(self, why: str | None) -> None:
        self.waits_for = why


def test_a_client_of_any_lane_ends_a_canary_that_nobody_holds_the_gates_for_and_does_not_wait() -> None:
    device, voids = Device(), list[Void]()
    Lane(device, "worker")
    other = Lane(device, "other")
    with device.canary("worker", voids.append):
        assert other.waits_for is None
        device.request_arrived("other")
        assert voids == [Void.DEVICE_BUSY]
        device.request_arrived("other")
    assert voids == [Void.DEVICE_BUSY], "told once"


def test_a_hold_lets_the_others_wait_and_not_the_lane_itself() -> None:
    device = Device()
    worker, other = Lane(device, "worker"), Lane(device, "other")
    device.hold("worker")
    assert (worker.waits_for, other.waits_for) == (None, "a canary of worker needs a quiet moment")
    late = Lane(device, "late")
    assert late.waits_for == other.waits_for
    device.let_go("worker")
    assert (other.waits_for, late.waits_for) == (None, None)


def test_those_that_two_lanes_hold_wait_until_both_have_let_go() -> None:
    device = Device()
    for name in ("first", "second"):
        Lane(device, name)
    other = Lane(device, "other")
    device.hold("first")
    device.hold("second")
    device.let_go("first")
    assert other.waits_for == "a canary of second needs a quiet moment"
    device.leave("second")
    assert other.waits_for is None
