import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "#shared/process/clock.ts";

/** A host that takes no connection within this is not there; what is no lasting work is answered within this too. */
export const answerWithinMs = 15_000;
/** How long a connection may be silent until the host at its other end is asked whether it is still there. */
const keepAliveMs = 30_000;

/**
 * Sends a request and resolves with the response as soon as its status is there. However long a response is silent, it
 * is waited for: a model takes its time to load.
 */
export function openRequest(
  url: URL,
  asking: {
    readonly method: "GET" | "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string | undefined;
    readonly signal: AbortSignal;
    readonly clock: Pick<Clock, "after">;
  },
): Promise<IncomingMessage> {
  const { method, headers, body, signal, clock } = asking;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers, signal, agent: false });
    const giveUp = clock.after(answerWithinMs, () => request.destroy(new LateAnswer()));
    request.setSocketKeepAlive(true, keepAliveMs);
    request.once("socket", (socket) => socket.once("connect", () => giveUp.cancel()));
    request.once("close", () => giveUp.cancel());
    request.once("response", resolve);
    request.once("error", reject);
    request.end(body);
  });
}

export class LateAnswer extends Error {
  override readonly name = "LateAnswer";
}
