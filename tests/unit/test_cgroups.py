"""Limits of containers and batch systems: files as the kernel shows them in both versions."""

import os
from pathlib import Path

from steptime import machine
from steptime.machine import cgroups

V1 = "31 23 0:28 {root} {top} rw,relatime - cgroup cgroup rw,{controller}\n"
V2 = "31 23 0:28 {root} {top} rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def shown(tmp_path, groups, mounts, files):
    """The folder of a process with these groups and mounts; `files` are relative to the top of the mounts."""
    (tmp_path / "cgroup").write_text(groups)
    (tmp_path / "mountinfo").write_text(mounts)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_second_version_counts_the_groups_above_too(tmp_path):
    proc = shown(
        tmp_path,
        "0::/user.slice/job 7\n",
        V2.format(root="/", top=tmp_path / "top"),
        {
            "top/user.slice/cpu.max": "250000 100000\n",
            "top/user.slice/cpu.stat": "usage_usec 1\nnr_throttled 2\nthrottled_usec 500000\n",
            "top/user.slice/memory.max": "2147483648\n",
            "top/user.slice/job 7/cpu.max": "max 100000\n",
            "top/user.slice/job 7/memory.max": "max\n",
            "top/user.slice/job 7/cpu.stat": "nr_throttled 0\nthrottled_usec 0\n",
        },
    )
    assert cgroups.cpu_quota(proc) == 2.5
    assert cgroups.memory_limit(proc) == 2**31
    files = cgroups.throttling_files(proc)
    assert cgroups.throttled_seconds([Path(file).read_text() for file in files]) == 0.5


def test_the_first_version_and_a_container_that_sees_its_group_as_the_top(tmp_path):
    tops = {name: tmp_path / name for name in ("cpu,cpuacct", "memory")}
    proc = shown(
        tmp_path,
        "4:memory:/docker/c0ffee\n3:cpu,cpuacct:/docker/c0ffee\n0::/\n",
        "".join(
            V1.format(root="/docker/c0ffee", top=top, controller=name) for name, top in tops.items()
        ),
        {
            "cpu,cpuacct/cpu.cfs_quota_us": "80000\n",
            "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "cpu,cpuacct/cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 250000000\n",
            "memory/memory.limit_in_bytes": "1073741824\n",
        },
    )
    assert cgroups.cpu_quota(proc) == 0.8
    assert cgroups.memory_limit(proc) == 2**30
    files = cgroups.throttling_files(proc)
    assert cgroups.throttled_seconds([Path(file).read_text() for file in files]) == 0.25


def test_no_limit_is_none(tmp_path):
    files = {"top/cpu.cfs_quota_us": "-1\n", "top/cpu.cfs_period_us": "100000\n"}
    proc = shown(
        tmp_path, "3:cpu:/\n", V1.format(root="/", top=tmp_path / "top", controller="cpu"), files
    )
    assert cgroups.cpu_quota(proc) is None and cgroups.memory_limit(proc) is None
    assert cgroups.cpu_quota(tmp_path / "none") is None


def test_quotas_count_for_threads_and_memory(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(cgroups, "cpu_quota", lambda: 2.5)
    monkeypatch.setattr(cgroups, "memory_limit", lambda: 2**20)
    assert (machine.usable_cpus(), machine.usable_bytes()) == (2, 2**20)
    assert len(machine.cpus_for(10)) == 10
    monkeypatch.setattr(cgroups, "cpu_quota", lambda: 0.5)
    assert machine.usable_cpus() == 1
    monkeypatch.setattr(cgroups, "memory_limit", lambda: 2**62)
    assert machine.usable_bytes() < 2**62
