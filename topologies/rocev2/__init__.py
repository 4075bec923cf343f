"""Packets of RoCEv2 without network interfaces that have RDMA: what sends them at a rate, and what counts them."""
