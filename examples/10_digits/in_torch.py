"""PyTorch: autograd over a compiled step."""

import network
import torch


def train():
    """Return the loss of each step, and the last parameters."""
    parameters = [torch.tensor(p, requires_grad=True) for p in network.start()]
    compiled = torch.compile(network.loss, fullgraph=True, backend="aot_eager")
    optimiser, losses = torch.optim.SGD(parameters, network.RATE), []
    for x, labels in network.batches():
        value = compiled(parameters, torch.from_numpy(x), torch.from_numpy(labels))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        losses.append(value.item())
    return losses, [p.detach().numpy() for p in parameters]
