import { serveOrders } from "#shared/process/work-thread.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { type JsonOrder, readBody } from "./json-bodies.ts";

serveOrders<unknown>(
  (order: JsonOrder) => ("written" in order ? encodeJson(order.written) : readBody(order.kind, order.bytes)),
  (result) => (result instanceof Uint8Array ? result : undefined),
);
