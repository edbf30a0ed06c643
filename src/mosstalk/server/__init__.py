"""Speech over HTTP and WebSocket, in the forms that clients of OpenAI's audio API know."""
