"""What this downstream adds to torch."""

import torch


def mean(numbers: list[int]) -> float:
    return torch.total(numbers) / len(numbers)
