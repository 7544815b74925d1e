import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";

export interface RedisInfo {
  readonly version: string;
  readonly processId: number;
}

const timeoutMs = 1_000;
const defaultPort = 6379;

/** Asks INFO and then PING over a socket of its own; rejects unless the server says PONG, so also while it loads. */
export function readRedisInfo(url: URL): Promise<RedisInfo> {
  return new Promise((resolve, reject) => {
    const address = { host: url.hostname, port: Number(url.port || defaultPort), timeout: timeoutMs };
    const socket =
      url.protocol === "rediss:" ? connectTls({ ...address, servername: url.hostname }) : connectTcp(address);
    let text = "";
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Error(why));
    };
    socket.setEncoding("utf8");
    socket.on("error", reject);
    socket.on("timeout", () => fail(`no PONG within ${timeoutMs} ms`));
    socket.on("close", () => fail("closed before a PONG came"));
    socket.on("data", (chunk: string) => {
      text += chunk;
      const refusal = /^-.*$/m.exec(text)?.[0];
      if (refusal !== undefined) fail(`it answers ${refusal}`);
      if (!/^\+PONG\r$/m.test(text)) return;
      socket.destroy();
      const field = (name: string): string => new RegExp(`^${name}:(.*)\r$`, "m").exec(text)?.[1] ?? "";
      resolve({ version: field("redis_version"), processId: Number(field("process_id")) });
    });
    socket.write([...login(url), ["INFO", "server"], ["PING"]].map(encodeCommand).join(""));
  });
}

function login(url: URL): string[][] {
  if (url.password === "") return [];
  const user = url.username === "" ? [] : [decodeURIComponent(url.username)];
  return [["AUTH", ...user, decodeURIComponent(url.password)]];
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
