"""What daifu_bc costs, measured: `python -m benchmarks`."""
