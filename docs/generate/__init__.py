"""The references, as Markdown, from the code: settings, job files, commands, REST API, policies."""
