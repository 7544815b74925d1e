import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import { streamProbe, streamProbePath } from "#shared/protocol/pairing.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { networkOf } from "../http/request-state.ts";

/** Streams under way at once: of one network, and of all. Each takes a second and some hundred bytes. */
export const streamsPerNetworkMax = 4;
export const streamsMax = 64;

/**
 * Mounts the route of a short stream whose events leave at known times. It takes no key, because a machine asks for it
 * before it is paired.
 */
export function probeStreams(server: FastifyInstance, { clock }: { readonly clock: Clock }): void {
  const underWay = new Map<string, number>();
  server.get(streamProbePath, (request, reply) => {
    const network = networkOf(request.ip);
    const others = underWay.get(network) ?? 0;
    const all = [...underWay.values()].reduce((sum, count) => sum + count, 0);
    if (others >= streamsPerNetworkMax || all >= streamsMax) {
      throw new Fault("server_is_overloaded", {
        message: `Only ${streamsPerNetworkMax} streams of a network may be tried at once (streamsPerNetworkMax), and ${streamsMax} of all (streamsMax). Try again in a second.`,
      });
    }
    underWay.set(network, others + 1);
    const events = Readable.from(eventsOf(clock));
    events.once("close", () => {
      const left = (underWay.get(network) ?? 1) - 1;
      if (left > 0) underWay.set(network, left);
      else underWay.delete(network);
    });
    // The headers of an answer's stream, so that proxies treat both alike.
    reply.header("content-type", "text/event-stream; charset=utf-8").header("cache-control", "no-cache");
    return reply.header("x-accel-buffering", "no").send(events);
  });
  refuseOtherMethods(server, streamProbePath, ["GET", "HEAD"]);
}

async function* eventsOf(clock: Clock): AsyncGenerator<string> {
  const { events, everyMs } = streamProbe;
  for (let event = 1; event <= events; event += 1) {
    if (event > 1) await sleep(clock, everyMs);
    yield `data: {"event":${event},"of":${events}}\n\n`;
  }
}
