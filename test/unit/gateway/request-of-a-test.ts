import type { IncomingHttpHeaders } from "node:http";
import { booksOf } from "#shared/records/book.ts";
import type { KeyLimits, KeyRecord } from "#shared/records/key-record.ts";
import type { Limits, Settled, Settlement } from "../../../services/gateway/limits/limits.ts";
import { Settlements } from "../../../services/gateway/limits/settlements.ts";
import { LocalLimits } from "../../../services/gateway/limits/local-limits.ts";
import type { ModelTarget } from "../../../services/gateway/routing/job-placements.ts";
import type { Needs } from "../../../services/gateway/routing/choose-machine.ts";
import type { ReadRequest } from "../../../services/gateway/requests/read-request.ts";
import { ModelRequest } from "../../../services/gateway/requests/request.ts";
import { RequestWork } from "../../../services/gateway/requests/request-work.ts";
import type { TurnableClock } from "../../harness/turnable-clock.ts";
import { type RequestTrace, untraced } from "../../../services/gateway/http/request-state.ts";
import { key } from "./routes-and-keys.ts";

/** A request as a test wishes it: a streamed chat with `llama3`, of a key without limits, unless it says otherwise. */
export interface WishedRequest extends Partial<Pick<ReadRequest, "kind" | "effort">> {
  readonly keyId?: string;
  readonly body?: string;
  readonly whole?: boolean;
  /** The models that a route leads to; without one, the model itself. */
  readonly models?: readonly string[];
  readonly routed?: string;
  readonly machines?: readonly string[];
  readonly limits?: KeyLimits;
}

const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The books of a gateway that is alone: what it settled in its own limits, and what it wrote for all gateways. */
export function booksOfATest(clock: TurnableClock) {
  const written: Settlement[] = [];
  const settled: Settled[] = [];
  const limits = new LocalLimits({ clock, spent: () => 0 });
  const local: ConstructorParameters<typeof Settlements>[0]["local"] = {
    gateways: 1,
    settle: (each) => (settled.push(each), limits.settle(each)),
    takeCharges: () => [],
    grow: (growth) => limits.grow(growth),
    adopt: (reservation) => limits.adopt(reservation),
  };
  const book = {
    settle: async (settlement: Settlement) => (written.push(settlement), { gateways: 1, grown: [], admissions: [] }),
  };
  const settlements = new Settlements({ book, local, gateway: "gateway", clock, log });
  return { written, settled, local: limits, settlements };
}

/** The limits of a key without any: nobody asks them. */
export const noLimits: Limits = {
  admit: async () => Promise.reject(new Error("a key without limits asks for nothing")),
  limitStatus: async () => ({}),
  occupy: () => {
    throw new Error("a key without limits occupies nothing");
  },
};

/** A request that came for this key, and is not read yet. */
export function requestFor(
  record: KeyRecord,
  given: {
    clock: TurnableClock;
    settlements: Settlements;
    limits?: Limits;
    headers?: IncomingHttpHeaders;
    trace?: RequestTrace;
  },
): ModelRequest {
  const { clock, settlements, limits = noLimits, headers = {}, trace = untraced } = given;
  const from = { address: "10.0.0.7", path: "/v1/chat/completions", headers, trace };
  return new ModelRequest(
    { id: "req_1", key: record, books: booksOf(record), from, leaving: new AbortController() },
    { limits, settlements, clock, log, external: new Set(), history: { add: () => undefined } },
  );
}

/** A request that was read, and that nothing has become of yet. */
export function requestOfATest(clock: TurnableClock, wish: WishedRequest = {}): ModelRequest {
  const {
    keyId = "key",
    kind = "chat",
    models = ["llama3"],
    whole = false,
    routed,
    body = "{}",
    effort,
    machines,
  } = wish;
  const record = {
    ...key(wish.limits === undefined ? {} : { limits: wish.limits }),
    id: keyId as ReturnType<typeof key>["id"],
  };
  const request = requestFor(record, { clock, settlements: booksOfATest(clock).settlements });
  const [model = ""] = models;
  const asked = routed === undefined ? { model } : { model: routed, routed, routedTo: model };
  request.asksFor({ streamed: !whole, ...asked });
  const targets: ModelTarget[] = models.map((modelId) => ({ modelId, machines }));
  const needs: Needs = { capability: "completion", tools: false, imageParam: undefined };
  const read: ReadRequest = {
    kind,
    model,
    needs,
    body: Buffer.from(body),
    sha256: undefined,
    stream: !whole,
    form: undefined,
    ignored: [],
    effort,
    promptTokens: 1,
    tokens: 1,
    ceiling: { promptTokens: 1, prompts: 1, answers: 1, answerTokens: 1 },
  };
  const terms = { keyId, targets, cacheSalt: undefined, traceparent: undefined, ignored: [] };
  request.takes(new RequestWork(read, terms));
  return request;
}
