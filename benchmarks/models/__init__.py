"""Six well-known architectures, shrunk to train on two processor cores: what daifu_bc costs there, and what a restart would."""
