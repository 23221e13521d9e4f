"""Two classes, so that two shards have something to do."""

import unittest

import torch
import torch_sums


class TestTotal(unittest.TestCase):
    hw_classification = "ACCELERATOR"

    def test_nothing(self) -> None:
        self.assertEqual(torch.total([]), 0)

    def test_some(self) -> None:
        self.assertEqual(torch.total([1, 2, 3]), 6)

    def test_large(self) -> None:
        """More than 32 bits hold: the submodule's type is used."""
        self.assertEqual(torch.total([2**40, 1]), 2**40 + 1)


class TestMean(unittest.TestCase):
    hw_classification = "GENERIC"

    def test_mean(self) -> None:
        self.assertEqual(torch_sums.mean([1, 2, 3]), 2)

    def test_no_numbers(self) -> None:
        with self.assertRaises(TypeError):
            torch_sums.mean(["x"])
