import { expect, test } from "vitest";
import { type OwnServer, type ServerBody, startOwnServer } from "../../harness/own-server.ts";

/** Starts a server that finds its first ports taken, so many times; `ports` keeps what was tried, `discarded` what was cleared. */
async function startWith(options: {
  timesTaken: number;
  port?: number;
  ports: number[];
  discarded: number[];
}): Promise<OwnServer> {
  const { timesTaken, ports, discarded } = options;
  const nothing = (): Promise<void> => Promise.resolve();
  const open = (port: number): Promise<ServerBody> => {
    ports.push(port);
    const taken = ports.length <= timesTaken;
    return Promise.resolve({
      host: "127.0.0.1",
      processId: undefined,
      launch: nothing,
      ended: () => Promise.resolve(taken),
      output: () => Promise.resolve(`listen tcp 127.0.0.1:${port}: bind: address already in use`),
      signal: nothing,
      discard: () => Promise.resolve(void discarded.push(port)),
    });
  };
  return startOwnServer({
    title: "a server",
    scheme: "test",
    port: options.port,
    open,
    answers: () => Promise.resolve(true),
  });
}

test("takes another port when the first was taken meanwhile, and leaves nothing of the first", async () => {
  const ports: number[] = [];
  const discarded: number[] = [];
  const server = await startWith({ timesTaken: 2, ports, discarded });
  expect(server.url).toBe(`test://127.0.0.1:${ports[2]}`);
  expect(discarded).toEqual(ports.slice(0, 2));
});

test("gives up after a named number of ports, and at once on a port it was told", async () => {
  const ports: number[] = [];
  await expect(startWith({ timesTaken: 99, ports, discarded: [] })).rejects.toThrow("address already in use");
  expect(ports).toHaveLength(5);
  const told: number[] = [];
  await expect(startWith({ timesTaken: 99, port: 4222, ports: told, discarded: [] })).rejects.toThrow("on port 4222");
  expect(told).toEqual([4222]);
});
