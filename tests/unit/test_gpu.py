"""What is read of GPUs, with a stand-in for NVML: no GPU has run these lines yet."""

from types import SimpleNamespace

import pytest

from steptime.machine import gpu


class StandIn:
    """Two GPUs whose counters go up by one step at each reading of their energy."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM = 1

    def __init__(self, lacking=()):
        self.step, self.lacking = 0, lacking

    def nvmlInit(self):  # noqa: N802
        if "nvmlInit" in self.lacking:
            raise self.NVMLError

    def __getattr__(self, name):
        if name in self.lacking:
            return self._fail
        return {
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByUUID": lambda name: 1,
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(
                used=1000 * (handle + 1) + 500 * self.step
            ),
            "nvmlDeviceGetTotalEnergyConsumption": self._energy,
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=40 + 20 * handle),
            "nvmlDeviceGetClockInfo": lambda handle, kind: 1000 + 100 * self.step,
        }[name]

    def _energy(self, handle):
        self.step += handle == 0
        return 5000 * self.step

    def _fail(self, *_):
        raise self.NVMLError


def watched(monkeypatch, nvml, visible):
    import sys

    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    watch = gpu.Watch(visible)
    watch.look(0)
    watch.begin()
    watch.look(0)
    watch.end()
    watch.look(0)
    return watch


def test_energy_utilisation_and_memory_are_of_the_cell_s_gpus_and_of_its_samples(monkeypatch):
    watch = watched(monkeypatch, StandIn(), ["0", "GPU-1f"])
    assert watch.columns() == {
        "peak_device_memory_bytes": 2 * 2 * 500,
        "device_utilisation": pytest.approx(0.5),
        "energy_joules": 10.0,
    }
    assert watch.clocks() == {"least_mhz": 1100, "most_mhz": 1100}


@pytest.mark.parametrize(
    ("lacking", "known"),
    [
        (["nvmlInit"], set()),
        (
            ["nvmlDeviceGetTotalEnergyConsumption"],
            {"peak_device_memory_bytes", "device_utilisation"},
        ),
    ],
)
def test_what_nvml_does_not_tell_is_not_known(monkeypatch, lacking, known):
    found = watched(monkeypatch, StandIn(lacking), ["0"]).columns()
    assert {name for name, value in found.items() if value is not None} == known
