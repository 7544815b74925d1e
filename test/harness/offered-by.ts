import type { OfferedModel } from "#shared/model/model.ts";
import { completeModel } from "../../services/agent/machine/offer.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";

/** When models of unknown age were seen for the first time, in tests. */
export const firstSeenSeconds = 1_767_225_600;

/** The models of a runtime as its machine would offer them. */
export async function offeredBy(
  runtime: Runtime,
  signal: AbortSignal = new AbortController().signal,
): Promise<OfferedModel[]> {
  const described = await runtime.catalogue(signal);
  return described.flatMap((each) => {
    const facts = { id: each.id, described: each, settings: undefined, runtime: runtime.name };
    return completeModel({ ...facts, firstSeenSeconds: () => firstSeenSeconds }) ?? [];
  });
}
