/** The filters of ended requests, which stand in the address. Pure. */
import type { SentTo } from "#shared/admin/admin-call.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";

export const requestFilters = ["outcome", "model", "machine", "key", "api", "longer", "since", "until"] as const;
export type RequestFilter = Readonly<Partial<Record<(typeof requestFilters)[number], string>>>;

export function endedAtMs({ at, total_ms: totalMs }: Pick<ShownRequest, "at" | "total_ms">): number {
  return Date.parse(at) + totalMs;
}

/** Returns the question to the gateway. The outcome is `failed`, or the code of one. */
export function queryOf(given: RequestFilter): NonNullable<SentTo<"GET /requests">["query"]> {
  const { outcome, since, until, ...same } = given;
  const isCode = outcome !== undefined && outcome !== "failed";
  return {
    ...same,
    failed: outcome === "failed" ? "true" : undefined,
    code: isCode ? outcome : undefined,
    since: isoTime(since),
    until: isoTime(until),
  };
}

/** Returns true for a request that just ended and that the filters let through. `keyName` is the name of its key. */
export function isWanted(request: ShownRequest, given: RequestFilter, keyName: string | undefined): boolean {
  const { outcome, model, machine, key, api = "", longer = "-1", since, until } = given;
  const { code } = request;
  const models = [request.model, request.answered_by];
  return (
    (outcome === undefined || (outcome === "failed" ? code !== "ok" : code === outcome)) &&
    (model === undefined || models.some((each) => each?.toLowerCase().includes(model.toLowerCase()))) &&
    (machine === undefined || request.tried.some((each) => each.machine === machine)) &&
    (key === undefined || key === request.key || key === keyName) &&
    request.path.includes(api) &&
    request.total_ms > Number(longer) * 1_000 &&
    (since === undefined || request.at >= (isoTime(since) ?? "")) &&
    (until === undefined || request.at < (isoTime(until) ?? ""))
  );
}

/** Returns the UTC time of a time in the viewer's zone. Undefined for a text that is none. */
function isoTime(local: string | undefined): string | undefined {
  const time = new Date(local ?? "");
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
