"""What people read, made from results/, cases/ and explanations.toml alone: no torch, no GPU, on any machine."""
