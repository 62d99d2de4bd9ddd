"""The kinds of artefact: each gives a builder, which knows no paper, what it needs of an artefact's inputs."""

from steptime.artefacts import (
    curves,
    epochs,
    grouped,
    hardware,
    machines,
    networks,
    principles,
    properties,
    resources,
    samples,
    scaling,
    software,
    sweep,
    times,
    topology,
    transfer,
)
from steptime.artefacts.command import Figure, Inputs, Table


def software_table(inputs: Inputs) -> Table:
    """Software actually used, beside the paper's."""
    made = inputs.measured, inputs.printed, inputs.paper, inputs.frameworks
    return software.build(*made, inputs.artefact, inputs.page)


def networks_table(inputs: Inputs) -> Table:
    """Networks as specified, beside the paper's."""
    return networks.build(inputs.networks, inputs.printed, inputs.paper, inputs.page)


def machines_table(inputs: Inputs) -> Table:
    """Machines actually used, beside the paper's."""
    return machines.build(inputs.measured, inputs.printed, inputs.paper, inputs.page)


def times_table(inputs: Inputs) -> Table:
    """Times, beside the paper's: of every network, or of the artefact's own; without ours where the grid has none."""
    measured = inputs.measured_if_any
    if "networks" in inputs.artefact:
        measured = measured.of(inputs.artefact["networks"])
    made = measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.networks
    return times.build(*made, inputs.artefact, inputs.page)


def properties_table(inputs: Inputs) -> Table:
    """What frameworks can do, as read from those that are installed, beside the paper's."""
    made = inputs.abilities, inputs.printed, inputs.paper, inputs.frameworks
    return properties.build(*made, inputs.artefact, inputs.page)


def hardware_table(inputs: Inputs) -> Table:
    """Kinds of hardware by metric, and what was measured of the same."""
    made = inputs.measured, inputs.peaks, inputs.printed, inputs.frameworks
    return hardware.build(*made, inputs.artefact, inputs.page)


def principles_table(inputs: Inputs) -> Table:
    """Principles of benchmarking, asked of this workflow."""
    return principles.build(
        inputs.measured, inputs.proofs, inputs.artefact["principles"], inputs.page
    )


def transfer_table(inputs: Inputs) -> Table:
    """A transfer to several devices, calculated."""
    return transfer.build(inputs.printed, inputs.peaks, inputs.page)


def sweep_figure(inputs: Inputs) -> Figure:
    """Time per mini-batch against mini-batch size of one network."""
    made = inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.networks
    return sweep.build(*made, inputs.artefact)


def trainings_table(inputs: Inputs) -> Table:
    """Times of whole trainings, beside the paper's; without ours where the grid has none."""
    made = inputs.trained.times, inputs.printed, inputs.paper, inputs.frameworks, inputs.networks
    inputs.page.notes[:0] = inputs.trained.notes
    return times.build(*made, inputs.artefact, inputs.page)


def bars_figure(inputs: Inputs) -> Figure:
    """Times of whole trainings as bars; without ours where the grid has none."""
    return grouped.build(
        inputs.trained.times, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact
    )


def epochs_table(inputs: Inputs) -> Table:
    """Epochs and seconds to an accuracy, over seeds."""
    return epochs.build(inputs.trained, inputs.frameworks, inputs.page)


def curves_figure(inputs: Inputs) -> Figure:
    """Accuracy against the time of training."""
    return curves.build(inputs.trained, inputs.frameworks, inputs.artefact)


def resources_figure(inputs: Inputs) -> Figure:
    """CPUs, memory and GPUs that were used over the time of training."""
    return resources.build(inputs.trained, inputs.frameworks, inputs.artefact)


def samples_figure(inputs: Inputs) -> Figure:
    """Sample images of a data set's classes."""
    return samples.build(inputs.images, inputs.artefact, inputs.paper["short"])


def scaling_figure(inputs: Inputs) -> Figure:
    """Time against the number of devices."""
    return scaling.build(
        inputs.measured, inputs.printed, inputs.paper, inputs.frameworks, inputs.artefact
    )


def topology_figure(inputs: Inputs) -> Figure:
    """How the machines that measured are built."""
    return topology.build(inputs.topologies, inputs.artefact)
