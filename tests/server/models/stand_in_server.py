"""Stands in for llama-server: the same arguments, variables and answers, and no model behind them.

A file of weights that says `damaged` makes it end at once, as a damaged one does.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    daemon_threads = True


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            return self.answer(200, {"status": "ok"})
        if not self.has_key():
            return self.answer(401, {"error": "Invalid API Key"})
        return self.answer(
            200,
            {
                "total_slots": int(GIVEN["-np"]),
                "default_generation_settings": {"n_ctx": int(GIVEN["-c"])},
                "variables": {name: value for name, value in os.environ.items() if name != "LLAMA_API_KEY"},
                "arguments": sys.argv[1:],
            },
        )

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.has_key():
            return self.answer(401, {"error": "Invalid API Key"})
        return self.answer(200, {"timings": {"prompt_per_second": 80.0, "predicted_per_second": 9.0}})

    def has_key(self):
        return self.headers["Authorization"] == f"Bearer {os.environ['LLAMA_API_KEY']}"

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


GIVEN = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))

if Path(GIVEN["-m"]).read_bytes() == b"damaged":
    sys.exit("error loading model: not a GGUF file")
try:
    server = Server((GIVEN["--host"], int(GIVEN["--port"])), Answers)
except OSError:
    sys.exit("couldn't bind HTTP server socket")
server.serve_forever()
