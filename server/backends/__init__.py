"""Language models behind one seam: `backend` is the contract, the other modules are its wires."""
