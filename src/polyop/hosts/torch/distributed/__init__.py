"""DTensors: calls that are split over a mesh of devices. PyTorch's ``torch.distributed.tensor``."""
