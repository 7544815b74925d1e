import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { onTestFinished } from "vitest";
import type { Fault } from "#shared/fault/fault.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { StreamWriter } from "../../../services/gateway/jobs/write-answer.ts";
import { endsOfChunks } from "../../../services/gateway/chats/render-completions.ts";
import { until } from "../../harness/until.ts";

export const timing = timingAt(1);

/** A stream writer at one end of a real connection, and at the other a client that keeps what it gets. */
export async function streamToAClient(options: { readonly reads?: boolean } = {}) {
  const { reads = true } = options;
  const cuts: Fault[] = [];
  const opened = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => opened.resolve(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const leaving = new AbortController();
  onTestFinished(() => {
    leaving.abort();
    server.closeAllConnections();
    server.close();
  });

  let status: number | undefined;
  let headers: Headers | undefined;
  let ended: "closed" | "broken" | undefined;
  let received = Buffer.alloc(0);
  const { port } = server.address() as AddressInfo;
  const read = async (): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}`, { signal: leaving.signal });
    ({ status, headers } = response);
    for await (const bytes of response.body ?? []) received = Buffer.concat([received, bytes]);
    ended = "closed";
  };
  if (reads) void read().catch(() => (ended = "broken"));
  else leaveUnread(port);
  const response = await opened.promise;
  const due = new Map<string, string>();
  const writer = new StreamWriter({
    ends: endsOfChunks,
    response,
    timing,
    headers: () => [...due].flat(),
    onAccept: (machine) => void due.set("machine", machine),
    onSlow: (fault) => void cuts.push(fault),
  });

  return {
    writer,
    response,
    /** The headers that are due beside the stream's own. */
    due,
    cuts,
    status: () => status,
    header: (name: string) => headers?.get(name),
    text: () => received.toString(),
    ended: () => ended,
    /** Everything that the client gets, when the stream is over. */
    all: async (): Promise<Buffer> => {
      await until(() => ended === "closed", { what: "the stream to be over" });
      return received;
    },
    has: (text: string) => until(() => received.includes(text), { what: `the client to have ${text}` }),
  };
}

/** Not by `fetch`, which closes the connection of a response that nobody reads when its memory is collected. */
function leaveUnread(port: number): void {
  const socket = connect(port, "127.0.0.1").pause();
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  onTestFinished(() => void socket.destroy());
}
