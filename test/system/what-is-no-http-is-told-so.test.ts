import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorIn } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

let up: UpProcess;
beforeAll(async () => {
  up = await startUp();
});
afterAll(() => up[Symbol.asyncDispose]());

const post = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n";

/** Bytes as they come on a socket, and the status and the code that their sender is told. */
const table: [string, string, number, string][] = [
  ["headers over 16 KiB", `${post}X-Long: ${"x".repeat(17_000)}\r\n\r\n`, 431, "headers_too_large"],
  ["a URL over 16 KiB", `GET /${"x".repeat(17_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431, "headers_too_large"],
  ["what is no HTTP", "Hello, is anybody there?\r\n\r\n", 400, "bad_request"],
  ["a method that nobody knows", "SING /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"],
  ["a header without a name", `${post}: nameless\r\n\r\n`, 400, "bad_request"],
  ["no Host", "GET /v1/models HTTP/1.1\r\n\r\n", 400, "bad_request"],
  ["a length that is no number", `${post}Content-Length: many\r\n\r\n`, 400, "bad_request"],
  [
    "two ways to say where it ends",
    `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
    "bad_request",
  ],
  ["a URL that is badly encoded", "GET /v1/models/%ZZ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request"],
];

test.each(table)("%s", async (_what, bytes, status, code) => {
  const { head, body } = await exchange(bytes);
  expect([statusOf(head), body === "" ? "no body" : errorIn(body).code]).toEqual([status, code]);
  expect(head).toMatch(/\r\nx-request-id: req_\w{10,}/i);
  expect(head).toMatch(/\r\ncontent-type: application\/json/i);
});

test("an expectation that nobody can meet is told with an id and the body of an error too", async () => {
  const { head, body } = await exchange(`${post}Expect: a-miracle\r\nContent-Length: 2\r\n\r\n{}`);
  expect([400, 401, 417]).toContain(statusOf(head));
  expect(body).not.toBe("");
  expect(errorIn(body).type).toBe("invalid_request_error");
  expect(head).toMatch(/\r\nx-request-id: req_/i);
});

test("after all of that the gateway serves as before", async () => {
  expect(await up.endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
});

const statusOf = (head: string): number => Number(head.split(" ")[1]);

/** Sends these bytes and waits for one answer, whether or not the connection then stays open. */
async function exchange(bytes: string): Promise<{ head: string; body: string }> {
  const { hostname, port } = new URL(up.endpoint.baseUrl);
  const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes));
  let text = "";
  let over = false;
  socket.setEncoding("utf8");
  socket.on("data", (piece: string) => (text += piece));
  socket.on("error", () => (over = true));
  socket.on("close", () => (over = true));
  try {
    await until(() => over || isWhole(text), { what: "an answer" });
  } finally {
    socket.destroy();
  }
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { head, body: /transfer-encoding: chunked/i.test(head) ? "" : body };
}

function isWhole(text: string): boolean {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  return length === undefined ? text.endsWith("0\r\n\r\n") : Buffer.byteLength(body) >= Number(length);
}
