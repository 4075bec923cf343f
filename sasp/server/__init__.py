"""The parameter server of one job: it keeps the parameters, and sends them in the order of SaSP."""
