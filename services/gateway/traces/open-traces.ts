import { resourceFromAttributes } from "@opentelemetry/resources";
import * as sdk from "@opentelemetry/sdk-trace";
import packageJson from "../../../package.json" with { type: "json" };
import type { BeginTrace } from "../http/request-state.ts";
import type { TracingTerms } from "../trace-settings.ts";
import { type QueueParts, SpanQueue } from "./span-queue.ts";
import { traceRequests } from "./trace-requests.ts";

/** The GenAI conventions that spans follow: v0.1.0 of `open-telemetry/semantic-conventions-genai`. */
const schemaUrl = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

/** Opens the traces of a gateway. `gateway` is the token of its boot; `stop` sends the last spans. */
export function openTraces(
  {
    otelExporterOtlpHeaders: headers,
    otelServiceName,
    otelTracesSampler: sampler,
    otelTracesSamplerArg: ratio,
  }: TracingTerms,
  { gateway, endpoint, ...parts }: QueueParts & { readonly gateway: string; readonly endpoint: string },
): { readonly beginTrace: BeginTrace; readonly stop: () => Promise<void> } {
  const url = new URL(`${endpoint.replace(/\/$/, "")}/v1/traces`);
  const queue = new SpanQueue(url, headers, parts);
  const isParentBased = sampler.startsWith("parentbased_");
  const fixed = sampler.endsWith("on") ? new sdk.AlwaysOnSampler() : new sdk.AlwaysOffSampler();
  const root = sampler.endsWith("ratio") ? new sdk.TraceIdRatioBasedSampler(ratio) : fixed;
  const { version } = packageJson;
  const service = { "service.name": otelServiceName, "service.version": version, "service.instance.id": gateway };
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes(service),
    sampler: isParentBased ? new sdk.ParentBasedSampler({ root }) : root,
    spanProcessors: [queue],
  });
  const tracer = provider.getTracer("trunkline", version, { schemaUrl });
  return { beginTrace: traceRequests({ tracer, isParentBased, clock: parts.clock }), stop: () => queue.shutdown() };
}
