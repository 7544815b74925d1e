import { MetricsText } from "../../harness/metrics-text.ts";
import { until } from "../../harness/until.ts";

const knownWithinMs = 30_000;

/** Waits until a gateway has so many machines: one that knows of some only would leave the others idle. */
export async function untilMachines(operationsUrl: string, machines: number): Promise<void> {
  const look = async (): Promise<boolean> => {
    const metrics = await MetricsText.scrape(operationsUrl);
    return metrics.value("trunkline_machines", { state: "ready" }) === machines;
  };
  await until(look, { what: `a gateway to have ${machines} machines`, timeoutMs: knownWithinMs, intervalMs: 20 });
}
