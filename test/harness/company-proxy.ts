import { once } from "node:events";
import http from "node:http";
import { connect } from "node:net";

/** A proxy as companies have them: it passes CONNECT on, and remembers to where. */
export async function startCompanyProxy() {
  const proxy = { hosts: [] as string[], refuses: false };
  const server = http.createServer();
  server.on("connect", (request, socket) => {
    if (proxy.refuses) {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    proxy.hosts.push(request.url ?? "");
    const [host = "", port] = (request.url ?? "").split(":");
    const there = connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      there.pipe(socket).pipe(there);
    });
    for (const each of [there, socket]) each.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  });
}
