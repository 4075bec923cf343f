"""HTTP/1.1 on sockets: request heads, chunks, connections, and the server."""
