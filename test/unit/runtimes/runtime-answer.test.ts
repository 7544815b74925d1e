import { createServer, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { Fault } from "#shared/fault/fault.ts";
import { RuntimeConnection } from "../../../services/agent/runtimes/runtime-connection.ts";
import { until } from "../../harness/until.ts";

/** An agent's connection to a server, which both end with the test. */
async function connectionTo(server: NetServer, told: string[] = []): Promise<RuntimeConnection> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const connection = new RuntimeConnection({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log: { warn: (_: unknown, text?: string) => void told.push(text ?? "") },
    faultOf: ({ status, text }) => new Fault("bad_request", { message: `${status}: ${text}` }),
  });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  return connection;
}

/** A server that answers by hand, and an agent's connection to it. */
async function connected(told: string[] = []) {
  const answers: ServerResponse[] = [];
  const sockets: Socket[] = [];
  const server = createServer((_request, answer) => void answers.push(answer));
  server.on("connection", (socket) => sockets.push(socket));
  onTestFinished(() => server.closeAllConnections());
  const connection = await connectionTo(server, told);
  const leaving = new AbortController();
  const ask = () => connection.stream({ path: "/x", body: {}, signal: leaving.signal });
  const answerAt = async (place: number): Promise<ServerResponse> => {
    await until(() => answers.length > place, { what: "the server is asked" });
    const answer = answers[place];
    if (answer === undefined) throw new Error("nobody asked");
    return answer;
  };
  return { ask, leaving, sockets, answerAt, close: () => server.close() };
}

const nothing = (): undefined => undefined;
const gone = new Error("nobody waits");

test("a server that does not end what is complete is left", async () => {
  const { ask, answerAt, sockets } = await connected();
  const answer = ask();
  const all = answer.read(() => {
    answer.complete();
    return undefined;
  });
  (await answerAt(0)).write("all that counts");
  await all;
  await until(() => sockets[0]?.destroyed === true, { what: "the connection is as it should be" });
});

test("a connection is kept for the next request when an answer was read to its end", async () => {
  const { ask, answerAt, sockets } = await connected();
  for (const place of [0, 1]) {
    const all = ask().read(nothing);
    (await answerAt(place)).end("all");
    await all;
    await nextTurn();
  }
  expect(sockets).toHaveLength(1);
});

test("an abort before the first byte closes the request", async () => {
  const { ask, leaving, answerAt, sockets } = await connected();
  const first = ask().read(nothing);
  await answerAt(0);
  leaving.abort(gone);
  await expect(first).rejects.toBe(gone);
  await until(() => sockets[0]?.destroyed === true, { what: "the connection is as it should be" });
});

test("a runtime that goes before it answers is told apart from one that is not there", async () => {
  const { ask, answerAt, sockets, close } = await connected();
  const first = ask().read(nothing);
  await answerAt(0);
  sockets[0]?.destroy();
  await expect(first).rejects.toMatchObject({ code: "runtime_offline", died: "runtime" });
  close();
  await expect(ask().read(nothing)).rejects.toMatchObject({ code: "runtime_offline", died: undefined });
});

/** The client takes up a connection again no sooner than this. */
async function kept(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
}

/** A server that answers the first request of a connection, and does this with the connection at the second. */
async function leavingKeptConnections(leave: (socket: Socket) => void) {
  const asked: string[] = [];
  const server = createTcpServer((socket) => {
    let served = false;
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      asked.push(bytes.toString().split(" ")[1] ?? "");
      if (served) return leave(socket);
      served = true;
      socket.write("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  const connection = await connectionTo(server);
  const { signal } = new AbortController();
  const ask = async (path: string): Promise<string> => {
    const answer = await connection.text({ path, body: { n: 1 }, signal });
    await kept();
    return answer;
  };
  return { asked, server, ask };
}

test.each<[string, (socket: Socket) => void]>([
  ["closes", (socket) => void socket.destroy()],
  ["resets", (socket) => void socket.resetAndDestroy()],
])("a request is sent once more when its runtime %s the kept connection under it", async (_, leave) => {
  const { asked, ask } = await leavingKeptConnections(leave);
  expect([await ask("/first"), await ask("/second"), await ask("/third")]).toEqual(["ok", "ok", "ok"]);
  expect(asked.filter((path) => path === "/second")).toHaveLength(2);
});

test("a request is sent no third time, and the runtime is said to have died", async () => {
  const { asked, server, ask } = await leavingKeptConnections((socket) => {
    server.close();
    socket.destroy();
  });
  await ask("/first");
  await expect(ask("/second")).rejects.toMatchObject({ code: "runtime_offline", died: "runtime" });
  expect(asked).toEqual(["/first", "/second"]);
});

test("a request that its runtime had for a second is not sent again", async () => {
  const clock = vi.spyOn(systemClock, "now");
  onTestFinished(() => clock.mockRestore());
  const { asked, ask } = await leavingKeptConnections((socket) => {
    const sentAtMs = systemClock.now();
    clock.mockReturnValue(sentAtMs + 1_000);
    socket.destroy();
  });
  await ask("/first");
  await expect(ask("/second")).rejects.toMatchObject({ code: "runtime_offline", died: "runtime" });
  expect(asked).toEqual(["/first", "/second"]);
});

test("the text of a refusal is read to its end, but no further than its limit", async () => {
  const { ask, answerAt } = await connected();
  const refused = ask().read(() => expect.unreachable("a refusal is handed to nobody"));
  const short = await answerAt(0);
  short.statusCode = 418;
  short.write("no ");
  short.end("tea");
  await expect(refused).rejects.toThrow("418: no tea");
  const endless = ask().read(nothing);
  const long = await answerAt(1);
  long.statusCode = 500;
  const flood = setInterval(() => long.write("x".repeat(10_000)), 1);
  onTestFinished(() => clearInterval(flood));
  await expect(endless).rejects.toThrow(/^500: x{65536}/);
});

test("an answer that is read by a taker without room is not taken without end, and is whole in the end", async () => {
  const { ask, answerAt } = await connected();
  const room = Promise.withResolvers<void>();
  let bytes = 0;
  const all = ask().read((taken) => {
    bytes += taken.byteLength;
    return room.promise;
  });
  const sent = await answerAt(0);
  const piece = Buffer.alloc(64 * 1024, "x");
  let written = 0;
  while (sent.write(piece) || sent.writableLength < 1024 * 1024) {
    written += piece.byteLength;
    if (written > 64 * 1024 * 1024) throw new Error("all of it was taken");
    await nextTurn();
  }
  written += piece.byteLength;
  sent.end();
  room.resolve();
  await all;
  expect(bytes).toBe(written);
});

test("a taker that is done is handed no more, and the connection is kept", async () => {
  const { ask, answerAt, sockets } = await connected();
  const taken: string[] = [];
  const answer = ask();
  const all = answer.read((piece) => {
    taken.push(Buffer.from(piece).toString());
    answer.complete();
    return undefined;
  });
  const sent = await answerAt(0);
  sent.write("all that counts");
  await all;
  sent.end("more than anybody wants");
  await until(() => sent.writableFinished, { what: "the body is sent" });
  await kept();
  const again = ask().read((piece) => void taken.push(Buffer.from(piece).toString()));
  (await answerAt(1)).end("once more");
  await again;
  expect(taken).toEqual(["all that counts", "once more"]);
  expect(sockets).toHaveLength(1);
});

test("an answer that breaks off after its taker is done is no failure, also while a piece waits", async () => {
  const { ask, answerAt, sockets } = await connected();
  const room = Promise.withResolvers<void>();
  const answer = ask();
  let taken = 0;
  const all = answer.read(() => {
    taken += 1;
    answer.complete();
    return room.promise;
  });
  (await answerAt(0)).write("all that counts");
  await until(() => taken === 1, { what: "the piece is taken" });
  sockets[0]?.destroy();
  await until(() => sockets[0]?.destroyed === true, { what: "the connection is closed" });
  await nextTurn();
  room.resolve();
  await all;
});

test("a taker that fails closes the request, and its failure is passed on", async () => {
  const { ask, answerAt, sockets } = await connected();
  for (const [place, fails] of [() => Promise.reject(gone), thrown].entries()) {
    const all = ask().read(fails);
    const told = expect(all).rejects.toBe(gone);
    (await answerAt(place)).write("one");
    await told;
    await until(() => sockets[place]?.destroyed === true, { what: "the connection is closed" });
  }
});

function thrown(): never {
  throw gone;
}

test("an abort ends what is handed over, whenever it comes", async () => {
  const early = await connected();
  early.leaving.abort(gone);
  await expect(early.ask().read(nothing)).rejects.toBe(gone);
  expect(early.sockets).toHaveLength(0);

  const connecting = await connected();
  const first = expect(connecting.ask().read(nothing)).rejects.toBe(gone);
  connecting.leaving.abort(gone);
  await first;
  await until(() => connecting.sockets.every((socket) => socket.destroyed), { what: "nothing is left open" });

  const { ask, leaving, answerAt, sockets } = await connected();
  let taken = 0;
  const all = expect(ask().read(() => void (taken += 1))).rejects.toBe(gone);
  (await answerAt(0)).write("one");
  await until(() => taken === 1, { what: "the first piece is taken" });
  leaving.abort(gone);
  await all;
  await until(() => sockets[0]?.destroyed === true, { what: "the connection is closed" });
});

test("the part that came of an answer that breaks off is handed over first", async () => {
  const { ask, answerAt, sockets } = await connected();
  const taken: string[] = [];
  const all = ask().read((piece) => void taken.push(Buffer.from(piece).toString()));
  const told = expect(all).rejects.toMatchObject({ code: "upstream_error", died: "runtime" });
  (await answerAt(0)).write("one");
  await until(() => taken.length === 1, { what: "the first piece is taken" });
  sockets[0]?.destroy();
  await told;
  expect(taken).toEqual(["one"]);
});

test.each([
  ["whole characters, cut anywhere", Buffer.from("añ漢😀.".repeat(3)), 0],
  ["a byte that begins nothing", Buffer.from([0x61, 0xff, 0x62]), 1],
  ["the rest of a character without its beginning", Buffer.from("漢").subarray(1), 1],
  ["a character without its rest", Buffer.concat([Buffer.from("漢").subarray(0, 2), Buffer.from("a")]), 1],
])("%s: bytes that are no UTF-8 are told once, however they are cut", async (_, bytes, times) => {
  for (const size of [1, 2, 3, 5, 100]) {
    const told: string[] = [];
    const { ask, answerAt } = await connected(told);
    let read = 0;
    const all = ask().read((piece) => void (read += piece.byteLength));
    const answer = await answerAt(0);
    for (let from = 0; from < bytes.length; from += size) {
      answer.write(bytes.subarray(from, from + size));
      await until(() => read >= Math.min(from + size, bytes.length), { what: "the piece to be read" });
    }
    answer.end();
    await all;
    expect(told).toHaveLength(times);
  }
});
