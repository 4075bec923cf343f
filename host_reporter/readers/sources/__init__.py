"""Sources of progress that are no single log: documents, MLflow's runs, wildcards, two files as one."""
