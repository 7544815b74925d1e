import { MetricsText } from "./metrics-text.ts";
import { until } from "./until.ts";

const lookEveryMs = 50;

export interface StatesSeen {
  readonly looks: number;
  /** Looks in which some machine was offline. */
  readonly offline: number;
}

/** Looks at a gateway's metrics until it is ended, and counts how often it shows a machine as offline. */
export function watchMachines(operationsUrl: string): { end(): Promise<StatesSeen> } {
  const ending = new AbortController();
  const watching = (async () => {
    const seen = { looks: 0, offline: 0 };
    while (!ending.signal.aborted) {
      const { families } = await MetricsText.scrape(operationsUrl);
      const samples = families.get("trunkline_machines")?.samples ?? [];
      seen.looks += 1;
      if (samples.some(({ labels, value }) => labels["state"] === "offline" && value > 0)) seen.offline += 1;
      const sinceMs = performance.now();
      await until(() => performance.now() - sinceMs > lookEveryMs, { what: "the next look", intervalMs: lookEveryMs });
    }
    return seen;
  })();
  return {
    end() {
      ending.abort();
      return watching;
    },
  };
}
