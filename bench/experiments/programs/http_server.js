// The same answers from Node, which has no GIL: the control.
"use strict";

const http = require("http");

const bodies = {
  "/json": JSON.stringify({ message: "Hello, World!" }),
  "/plaintext": "Hello, World!",
};
const server = http.createServer((request, response) => {
  const body = bodies[request.url] || "";
  response.writeHead(200, { "Content-Length": Buffer.byteLength(body) });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ port: server.address().port, pid: process.pid }));
});
