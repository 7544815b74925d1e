import { connect } from "node:net";
import { until } from "../harness/until.ts";
import { readAnswers, type WireAnswer } from "./answer-reader.ts";

/** What came back over one connection. */
export interface Exchanged {
  readonly answers: readonly WireAnswer[];
  /** Whether the other side closed it after its answers. */
  readonly closed: boolean;
  /** What came and is no whole answer. */
  readonly rest: string;
}

/** Another request on the same connection, whose answer shows that it is still read. */
const proof = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

/**
 * Sends bytes as they are over a connection of their own and reads this many answers. Then the connection is expected to
 * be closed by the other side, or proved open by one more request.
 */
export async function exchange(
  baseUrl: string,
  asked: {
    readonly bytes: string | Buffer;
    readonly answers: number;
    readonly afterwards: "open" | "closed";
    readonly hangsUp?: boolean | undefined;
  },
): Promise<Exchanged> {
  const { hostname, port } = new URL(baseUrl);
  const bytes = typeof asked.bytes === "string" ? Buffer.from(asked.bytes, "latin1") : asked.bytes;
  // A connection that is half closed by us is still read to its end.
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let text = "";
  let closed = false;
  socket.setEncoding("latin1");
  socket.on("data", (piece: string) => (text += piece));
  socket.on("end", () => (closed = true));
  socket.on("error", () => (closed = true));
  socket.write(bytes);
  if (asked.hangsUp === true) socket.end();
  const come = (): number => readAnswers(text, closed).answers.length;
  try {
    await until(() => closed || come() >= asked.answers, { what: `${asked.answers} answers, after: ${text}` });
    if (asked.afterwards === "closed")
      await until(() => closed, { what: `the connection to be closed, after: ${text}` });
    else if (!closed) {
      const before = come();
      socket.write(proof);
      await until(() => closed || come() > before, { what: `one more answer, after: ${text}` });
    }
  } finally {
    socket.destroy();
  }
  const { answers, rest } = readAnswers(text, closed);
  const proved = asked.afterwards === "open" && !closed && answers.at(-1)?.body === '{"status":"ok"}';
  return { answers: proved ? answers.slice(0, -1) : answers, closed, rest };
}
