import { connect } from "node:net";

export interface NatsInfo {
  readonly version: string;
  readonly serverName: string;
}

const timeoutMs = 1_000;

/** The greeting of a NATS server, which it sends in clear text to whoever connects, before any login or TLS. */
export function readNatsInfo(address: { host: string; port: number }): Promise<NatsInfo> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address, timeout: timeoutMs });
    let text = "";
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Error(why));
    };
    socket.setEncoding("utf8");
    socket.on("error", reject);
    socket.on("timeout", () => fail(`no NATS greeting within ${timeoutMs} ms`));
    socket.on("close", () => fail("closed before a NATS greeting came"));
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (!text.includes("\r\n")) return;
      socket.destroy();
      const greeting = /^INFO (\{.*\})\s*$/m.exec(text)?.[1];
      if (greeting === undefined) reject(new Error("what answers there is not a NATS server"));
      else resolve(parseInfo(greeting));
    });
  });
}

function parseInfo(greeting: string): NatsInfo {
  const info: unknown = JSON.parse(greeting);
  const field = (name: string): string =>
    typeof info === "object" && info !== null && name in info ? String(Reflect.get(info, name)) : "";
  return { version: field("version"), serverName: field("server_name") };
}
