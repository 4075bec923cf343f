"""Files of records: CSV, JSON lines, whole documents, and the files of trackers."""
