import type { FastifyInstance, FastifyReply } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Log } from "#shared/process/log.ts";
import { readDuration } from "#shared/process/quantities.ts";
import { capturedSums, sealContent } from "#shared/records/captured-content.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { StoredResponses } from "#shared/records/stored-responses.ts";
import { callerOf } from "../keys/authenticate.ts";
import type { Endpoint, Incoming, InferenceDependencies } from "../requests/endpoint.ts";
import { answerRequest } from "../requests/obtain.ts";
import { RequestContent } from "./request-content.ts";

/** Says on each answer to a proven key for how long the content of the key's requests is kept. */
const capturedHeader = "x-trunkline-captured";

interface CapturesOptions {
  readonly captures: StoredResponses;
  readonly peppers: Peppers;
  /** Counts what became of the content of a request. */
  readonly meter: { captured(outcome: "kept" | "cut" | "failed"): void };
  readonly log: Pick<Log, "warn">;
}

/** Keeps the content of the requests of keys whose record says so, for admins. */
export class Captures {
  /** Resolves once the content of all requests that have ended is stored. */
  written: Promise<unknown> = Promise.resolve();
  readonly #options: CapturesOptions;
  readonly #room = { heldBytes: 0 };

  constructor(options: CapturesOptions) {
    this.#options = options;
  }

  /** Tells the clients of captured keys, on all answers of a scope of routes. */
  announce(scope: FastifyInstance): void {
    scope.addHook("onRequest", (request, reply, done) => {
      const { capture } = callerOf(request).key;
      if (capture !== undefined) void reply.header(capturedHeader, capture);
      done();
    });
  }

  /** Returns the handler of an endpoint. The requests of captured keys run with a reader and a rendering of their own. */
  handle(endpoint: Endpoint, dependencies: InferenceDependencies) {
    const answer = answerRequest(endpoint, dependencies);
    return (incoming: Incoming, reply: FastifyReply): Promise<void> => {
      const { key } = callerOf(incoming);
      if (key.capture === undefined) return answer(incoming, reply);
      const content = new RequestContent(this.#room);
      const { reader } = dependencies;
      const captured = answerRequest(capturing(endpoint, content), {
        ...dependencies,
        reader: { read: async (...given) => content.asks(await reader.read(...given)) },
      });
      return captured(incoming, reply).finally(() => {
        const { written } = this;
        this.written = this.#keep(incoming.id, key, content).then(() => written);
      });
    };
  }

  async #keep(id: string, { id: key, capture = "1h" }: KeyRecord, content: RequestContent): Promise<void> {
    const { captures, peppers, meter, log } = this.#options;
    const json = content.json();
    try {
      if (json === undefined) return;
      const sealed = sealContent({ id, key }, json, peppers);
      const outcome = await captures.put(key, { id, sealed }, { keptMs: readDuration(capture), ...capturedSums });
      if (outcome === "full")
        throw new Error(`captured content fills ${capturedSums.siteBytesMax} bytes (capturedSums)`);
      if (outcome !== "closed") meter.captured(content.isCut ? "cut" : "kept");
    } catch (error) {
      meter.captured("failed");
      log.warn({ key, request: id, internal: Fault.from(error).reason }, "the content of a request was not kept");
    } finally {
      content.end();
    }
  }
}

/** Returns an endpoint that gives the content of a request each piece of its answer. */
function capturing(endpoint: Endpoint, content: RequestContent): Endpoint {
  return {
    ...endpoint,
    rendering(asked, request) {
      const rendering = endpoint.rendering(asked, request);
      const render: typeof rendering.render = (head, offer) => {
        const renderer = rendering.render(head, offer);
        content.begins();
        return {
          push(events) {
            content.delivers(events);
            return renderer.push(events);
          },
          end: (timings) => renderer.end(timings),
          onMoved: () => renderer.onMoved?.(),
        };
      };
      return { ...rendering, render };
    },
  };
}
