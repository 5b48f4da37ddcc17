"""The tool servers behind the bank: added, removed, their health, single calls relayed, new ones explored."""
