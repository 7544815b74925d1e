import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { GatewayConfig } from "./config.ts";
import type { BeginTrace } from "./http/request-state.ts";
import type { QueueParts } from "./traces/span-queue.ts";

interface TracingParts extends QueueParts {
  readonly config: GatewayConfig;
  readonly gateway: string;
  readonly lifecycle: Lifecycle;
}

/** Opens the traces where a collector is configured. Otherwise no library of OpenTelemetry is loaded. */
export async function composeTraces({ config, lifecycle, ...parts }: TracingParts): Promise<BeginTrace | undefined> {
  const { unhonoured: settings, otelExporterOtlpEndpoint: endpoint, otelTracesSampler: sampler } = config;
  const { log } = parts;
  if (settings.length > 0) log.warn({ settings }, "these settings of OpenTelemetry are not honoured (docs/signals.md)");
  if (endpoint === undefined) return undefined;
  const { openTraces } = await import("./traces/open-traces.ts");
  const { beginTrace, stop } = openTraces(config, { endpoint, ...parts });
  lifecycle.onStop("traces", stop);
  const which = sampler.endsWith("ratio")
    ? `a part of ${config.otelTracesSamplerArg} of the requests is traced`
    : "requests are traced";
  log.warn(
    { collector: new URL(endpoint).host, sampler },
    `${which}; OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG say which`,
  );
  return beginTrace;
}
