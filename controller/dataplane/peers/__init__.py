"""What connects to the OpenFlow port, checked before Ryu reads it."""
