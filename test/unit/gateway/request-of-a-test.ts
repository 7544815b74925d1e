import type { KeyLimits } from "#shared/records/key-record.ts";
import { Settlements } from "../../../services/gateway/limits/settlements.ts";
import { LocalLimits } from "../../../services/gateway/limits/local-limits.ts";
import type { ModelTarget } from "../../../services/gateway/routing/job-placements.ts";
import type { Needs } from "../../../services/gateway/routing/choose-machine.ts";
import { ModelRequest, type RequestWork } from "../../../services/gateway/requests/request.ts";
import type { TurnableClock } from "../../harness/turnable-clock.ts";
import { key } from "./routes-and-keys.ts";

/** A request as a test wishes it: a streamed chat with `llama3`, of a key without limits, unless it says otherwise. */
export interface WishedRequest extends Partial<Pick<RequestWork, "kind" | "effort">> {
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
  const request = new ModelRequest({ id: "req_1", key: record, from }, { limits, settlements, clock, log });
  const [model = ""] = models;
  const asked = routed === undefined ? { model } : { model: routed, routed, routedTo: model };
  request.asksFor({ streamed: !whole, ...asked });
  const targets: ModelTarget[] = models.map((modelId) => ({ modelId, machines }));
  const needs: Needs = { capability: "completion", tools: false, imageParam: undefined };
  const work: RequestWork = {
    kind,
    targets,
    needs,
    streamed: !whole,
    sha256: undefined,
    tellsStop: undefined,
    effort,
    cacheSalt: undefined,
  };
  request.takes(work, { body: Buffer.from(body), ignored: [] });
  return request;
}
