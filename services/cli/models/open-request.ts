import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { Clock } from "#shared/process/clock.ts";

/** Timeout of a connection attempt. Requests other than long model actions must also be answered within it. */
export const answerWithinMs = 15_000;
/** Time of silence on a connection before TCP keep-alive probes the other host. */
const keepAliveMs = 30_000;

/**
 * Sends a request and resolves with the response as soon as its status has arrived. A silent response has no timeout: a
 * model takes time to load.
 */
export function openRequest(
  url: URL,
  asking: {
    readonly method: "GET" | "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string | undefined;
    readonly signal: AbortSignal;
    readonly ca?: string[] | undefined;
    readonly clock: Pick<Clock, "after">;
  },
): Promise<IncomingMessage> {
  const { method, headers, body, signal, ca, clock } = asking;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers, signal, agent: false, ...(ca === undefined ? {} : { ca }) });
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
