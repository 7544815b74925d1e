import { expect, test } from "vitest";
import {
  unprovenMax,
  unprovenPerNetworkMax,
  UnprovenSockets,
} from "../../../../services/gateway/tunnels/accept-tunnels.ts";

test("sockets that wait longest give way to new ones when many networks hold all places", () => {
  const unproven = new UnprovenSockets();
  const gaveWay: number[] = [];
  const admit = (socket: number, network: string): (() => void) => {
    const release = unproven.admit(network, () => {
      gaveWay.push(socket);
      release();
    });
    return release;
  };
  const releases = Array.from({ length: unprovenMax }, (_, socket) => {
    return admit(socket, `network ${Math.floor(socket / unprovenPerNetworkMax)}`);
  });
  expect(() => admit(-1, "network 1")).toThrow("unprovenPerNetworkMax");
  expect(gaveWay).toEqual([]);
  admit(unprovenMax, "an agent's");
  expect(gaveWay).toEqual([0]);
  releases[1]?.();
  admit(unprovenMax + 1, "another agent's");
  expect(gaveWay).toEqual([0]);
  // The first one left a place of its network, and its own release came a second time.
  releases[0]?.();
  // As long as its own sockets give way, the network has 62.
  const its = Array.from({ length: unprovenPerNetworkMax - 2 }, (_, place) => 2 + place);
  for (const place of its) admit(unprovenMax + place, "network 0");
  expect(gaveWay).toEqual([0, ...its]);
  for (const place of [0, 1]) admit(2 * unprovenMax + place, "network 0");
  expect(() => admit(-1, "network 0")).toThrow("unprovenPerNetworkMax");
  expect(gaveWay).toEqual([0, ...its, unprovenPerNetworkMax, unprovenPerNetworkMax + 1]);
});
