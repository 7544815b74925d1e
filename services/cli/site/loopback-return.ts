import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { finished } from "node:stream/promises";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { provesSame } from "#shared/protocol/pairing.ts";

/** Time for which a command waits for the browser. A sign-in at the provider may take as long. */
const waitMs = 10 * 60_000;
const plain = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", connection: "close" };

/** The browser that came back with the answer to a login. The code is null if the person refused. */
interface ReturnedBrowser {
  readonly code: string | null;
  /** Shows the outcome of the login to the person. */
  readonly tell: (status: 200 | 400, text: string) => Promise<void>;
}

/**
 * Listens on a free port of 127.0.0.1 for the browser that brings the answer to one login. Every page and program of this host
 * can send something there, so that a request without the state of the login is refused, and ends nothing.
 */
export async function openLoopback(state: string) {
  const { promise: returned, resolve, reject } = Promise.withResolvers<ReturnedBrowser>();
  let isTaken = false;
  const server = createServer(({ method, url = "", headers: { host } }, response) => {
    const tell = (status: number, text: string): Promise<void> =>
      finished(response.writeHead(status, plain).end(`${text}\n`)).catch(() => undefined);
    const given = URL.parse(url, "http://127.0.0.1")?.searchParams;
    const isAnswer = method === "GET" && host === `127.0.0.1:${port}` && provesSame(given?.get("state") ?? "", state);
    if (!isAnswer || isTaken) {
      void tell(400, "This is no answer to the login that waits here. Begin again with `trunkline login`.");
      return;
    }
    isTaken = true;
    resolve({ code: given?.get("code") ?? null, tell });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  AbortSignal.timeout(waitMs).addEventListener("abort", () =>
    reject(new StartFailure(exitCodes.failed, `Nobody confirmed the login within ${waitMs / 60_000} minutes.`)),
  );
  const close = (): void => server.close().closeAllConnections();
  return { port, returned, [Symbol.dispose]: close };
}
