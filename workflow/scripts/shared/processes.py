"""Reads what the kernel says of a process and of those below it: some frameworks are programs that Python calls."""

import os


def text(path):
    """Returns the text of a file of the kernel's; "" where there is none, as when its process has ended."""
    try:
        with open(str(path), errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""


def children(pid):
    """Returns the processes that a process has started and that have not ended."""
    folder = "/proc/{}/task".format(pid)
    try:
        tasks = os.listdir(folder)
    except OSError:
        return []
    texts = (text("{}/{}/children".format(folder, task)) for task in tasks)
    return [int(child) for each in texts for child in each.split()]


def family(pid):
    """Returns a process and those below it that have not ended."""
    found = []
    left = [pid]
    while left:
        found.append(left.pop())
        left += children(found[-1])
    return found
