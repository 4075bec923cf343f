"""What each operator costs: measured, fitted, or bounded by the device."""
