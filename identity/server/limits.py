"""What one client may take from the server: seconds, bytes and places. Pure."""

# A connection without a request. Longer than `keepalive_timeout` of the proxy (deploy/nginx.conf),
# so that the proxy closes first and never sends a login into a connection that is closing.
IDLE_SECONDS = 15.0
# The same after SIGTERM: still longer than the proxy's, and short enough for a quick restart.
IDLE_SECONDS_WHEN_STOPPING = 6.0
# The same for connections beyond the bound of a process.
IDLE_SECONDS_WHEN_FULL = 2.0
# From the first byte of a request to the end of its headers.
HEADER_SECONDS = 10.0
# From the end of the headers to the end of the body, and a second more for so many bytes received.
BODY_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 16 * 1024
# Until the application begins its answer.
ANSWER_SECONDS = 30.0
# A client that does not read its answer.
WRITE_SECONDS = 10.0
# After an answer that ends the connection: what still arrives is read and dropped, because a
# connection that is closed with unread bytes is reset, and a reset destroys the answer.
LINGER_SECONDS = 2.0

MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 100
# As it is sent. No path of ours comes near; a longer one is neither decoded nor looked up.
MAX_PATH_LENGTH = 1024
# The application is called when the whole body is there, or more than this: a slow body of a login
# takes no place of a request in progress.
BUFFERED_BODY_BYTES = 16 * 1024
# Of a body that the application did not want to read to its end.
MAX_DROPPED_BYTES = 1024 * 1024
# Requests that one client may send without waiting for an answer.
MAX_PIPELINED = 64
