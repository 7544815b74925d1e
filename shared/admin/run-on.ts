import type { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { SentParts } from "./admin-call.ts";
import type { AdminOperation, AdminSite, Input } from "./operation.ts";

/** Runs an operation on the store, as a gateway does when the same is sent to it. */
export async function runOn<Of extends AdminOperation & { run(input: Input, site: AdminSite): Promise<unknown> }>(
  site: AdminSite,
  operation: Of,
  sent: SentParts<Of>,
): Promise<z.output<Of["answer"]>> {
  const given: { readonly params?: unknown; readonly query?: unknown; readonly body?: unknown } = sent;
  const read = (part: "params" | "query" | "body"): unknown => {
    const { success, data, error } = operation[part].safeParse(given[part] ?? {});
    if (success) return data;
    const [issue] = error.issues;
    const message = `Invalid value for '${issue?.path.join(".")}': it ${issue?.message}.`;
    throw new Fault("invalid_value", { message });
  };
  const input = { params: read("params"), query: read("query"), body: read("body") };
  return operation.run(input, site) as Promise<z.output<Of["answer"]>>;
}
