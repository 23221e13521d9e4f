"""Run planned tests in processes that may crash, hang or lose their device, and lose none of them."""
