"""Skills as files: packages for other hosts, bundles for other banks, and what is read back of them."""
