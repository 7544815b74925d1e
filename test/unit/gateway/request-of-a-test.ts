import type { KeyLimits } from "#shared/records/key-record.ts";
import { Settlements } from "../../../services/gateway/limits/settlements.ts";
import { LocalLimits } from "../../../services/gateway/limits/local-limits.ts";
import type { ModelTarget } from "../../../services/gateway/routing/job-placements.ts";
import type { Needs } from "../../../services/gateway/routing/choose-machine.ts";
import type { ReadRequest } from "../../../services/gateway/requests/read-request.ts";
import { ModelRequest } from "../../../services/gateway/requests/request.ts";
import { RequestWork } from "../../../services/gateway/requests/request-work.ts";
import type { TurnableClock } from "../../harness/turnable-clock.ts";
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
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const local = new LocalLimits({ clock, spent: () => 0 });
  const book = { settle: async () => ({ gateways: 1, grown: [], admissions: [] }) };
  const limits = {
    admit: async () => Promise.reject(new Error("a key without limits asks for nothing")),
    limitStatus: async () => ({}),
    occupy: () => {
      throw new Error("a key without limits occupies nothing");
    },
  };
  const settlements = new Settlements({ book, local, gateway: "gateway", clock, log });
  const from = { address: "10.0.0.7", path: "/v1/chat/completions", headers: {} };
  const record = {
    ...key(wish.limits === undefined ? {} : { limits: wish.limits }),
    id: keyId as ReturnType<typeof key>["id"],
  };
  const request = new ModelRequest(
    { id: "req_1", key: record, from, leaving: new AbortController() },
    { limits, settlements, clock, log },
  );
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
