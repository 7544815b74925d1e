import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { startUp } from "../harness/start-trunkline.ts";

const clients = 1_500;
const setting = "/proc/sys/net/core/somaxconn";
const roomOfThisHost = existsSync(setting) ? Number(readFileSync(setting, "utf8")) : 0;
if (roomOfThisHost < clients) console.warn(`Skipped: ${setting} is ${roomOfThisHost} here, below ${clients}.`);

describe.skipIf(roomOfThisHost < clients)("clients that come all at once", () => {
  test("clients that come all at once are connected while the gateway is busy, and then answered, rather than left to try again a second later", async () => {
    await using up = await startUp();
    const { hostname, port } = new URL(up.endpoint.baseUrl);
    await up.freeze();
    const sockets = Array.from({ length: clients }, () => connect(Number(port), hostname));
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    await up.thaw();
    const answers = await Promise.all(
      sockets.map((socket) => {
        socket.write("GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        return text(socket);
      }),
    );
    expect(new Set(answers.map((answer) => answer.slice(0, answer.indexOf("\r\n"))))).toEqual(
      new Set(["HTTP/1.1 401 Unauthorized"]),
    );
  });
});
