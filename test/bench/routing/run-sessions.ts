import { Agent, request as httpRequest } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { firstModel as model } from "../variants/variant.ts";
import type { Message, Session } from "./workloads.ts";

/** One request, with its times from the moment it was sent. */
export interface Asked {
  readonly firstMs: number;
  readonly totalMs: number;
  /** The whole answer, or undefined for a request that failed. */
  readonly answer: string | undefined;
  readonly why: string;
}

interface Target {
  /** Requests go to these in turn, as a proxy in front of several gateways sends them. */
  readonly baseUrls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

const requestMsMax = 120_000;

/** Runs all sessions at their times. A session ends with its first request that fails. */
export async function runSessions(
  sessions: readonly Session[],
  { baseUrls, headers }: Target,
): Promise<readonly Asked[]> {
  const agent = new Agent({ keepAlive: true });
  const all: Asked[] = [];
  let turn = 0;
  const run = async ({ startMs, tools, turns }: Session): Promise<void> => {
    await pause(startMs);
    const messages: Message[] = [];
    let answer = "";
    for (const { pauseMs, adds, calls } of turns) {
      await pause(pauseMs);
      if (messages.length > 0)
        messages.push({ role: "assistant", content: answer, ...(calls && { tool_calls: calls }) });
      messages.push(...adds);
      const body = { model, stream: true, stream_options: { include_usage: true }, messages, ...(tools && { tools }) };
      const url = `${baseUrls[turn++ % baseUrls.length]}/chat/completions`;
      const asked = await ask(url, { agent, headers, body: JSON.stringify(body) });
      all.push(asked);
      if (asked.answer === undefined) return;
      ({ answer } = asked);
    }
  };
  await Promise.all(sessions.map(run));
  agent.destroy();
  return all;
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
}

/** Sends one streamed chat. Never rejects. */
function ask(
  url: string,
  { agent, headers, body }: { readonly agent: Agent; readonly headers: Target["headers"]; readonly body: string },
): Promise<Asked> {
  const sentMs = performance.now();
  return new Promise((resolve) => {
    let [firstMs, text, rest, status] = [0, "", "", 0];
    let isDone = false;
    const settle = (why: string): void => {
      const totalMs = performance.now() - sentMs;
      const isWhole = status === 200 && isDone && text !== "";
      resolve({
        firstMs,
        totalMs,
        answer: isWhole ? text : undefined,
        why: isWhole ? "" : why || `${status}: ${rest}`,
      });
    };
    const take = (line: string): void => {
      if (line === "data: [DONE]") isDone = true;
      else if (line.startsWith("data: ")) {
        const piece = (JSON.parse(line.slice(6)) as Chunk).choices?.[0]?.delta?.content ?? "";
        if (piece !== "" && text === "") firstMs = performance.now() - sentMs;
        text += piece;
      }
    };
    const outgoing = httpRequest(url, {
      method: "POST",
      agent,
      headers: { ...headers, "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      signal: AbortSignal.timeout(requestMsMax),
    });
    outgoing.on("error", (error) => settle(error.message));
    outgoing.on("response", (response) => {
      status = response.statusCode ?? 0;
      response.setEncoding("utf8");
      response.on("data", (data: string) => {
        const lines = (rest + data).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) take(line);
      });
      response.on("error", (error) => settle(error.message));
      response.on("end", () => settle(""));
    });
    outgoing.end(body);
  });
}
