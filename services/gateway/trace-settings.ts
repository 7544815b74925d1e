import { unescape } from "node:querystring";
import { z } from "zod";
import { commaList, type Environment, secret, variableOf } from "#shared/process/config.ts";

const samplers = ["always_on", "always_off", "traceidratio"].flatMap((each) => [each, `parentbased_${each}`]);

const samplerDefault = "parentbased_traceidratio";

/** Headers as OpenTelemetry writes them: names and percent-encoded values. */
const headers = commaList
  .refine(
    (all) => all.every((each) => /^[\w.-]+=[!-~]+$/.test(each)),
    "must be headers such as api-key=abc,x-site=home",
  )
  .transform((all) =>
    all.map((each): readonly string[] => [each.replace(/=.*/, ""), unescape(each.replace(/^[^=]*=/, ""))]),
  )
  // An error about any other value would have it in its text.
  .refine((all) => all.every(([, value = ""]) => /^[ -~]+$/.test(value)), "must have values of printable ASCII");

const webUrl = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });
const hasNoUser = (text: string): boolean => !/^[a-z]+:\/\/[^/]*@|[?#]/.test(text);

/** The settings of traces, of which most have OpenTelemetry's own names. */
export const tracingSettings = {
  otelExporterOtlpEndpoint: webUrl
    .refine(hasNoUser, "must be a URL without a user, '?' and '#': a token belongs into OTEL_EXPORTER_OTLP_HEADERS")
    .optional(),
  otelExporterOtlpHeaders: secret(headers.default([])),
  otelServiceName: z.string().default("trunkline"),
  otelTracesSampler: z.enum(samplers, `must be one of ${samplers.join(", ")}`).default(samplerDefault),
  otelTracesSamplerArg: z
    .string()
    .regex(/^(0(\.\d{1,9})?|1)$/, "must be a part of all traces from 0 to 1, such as 0.1")
    .transform(Number)
    .default(0.1),
  /** Where people look at a trace, with `{trace}` in place of its id. */
  traceUrl: webUrl
    .refine((text) => text.includes("{trace}"), "must have {trace} in place of the id of a trace")
    .optional(),
} as const;

/** Returns the other settings of OpenTelemetry that an environment has. */
export function unhonouredOtel(environment: Environment): readonly string[] {
  const honoured = new Set(Object.keys(tracingSettings).map(variableOf));
  return Object.keys(environment)
    .filter((name) => name.startsWith("OTEL_") && environment[name] && !honoured.has(name.replace(/_FILE$/, "")))
    .toSorted();
}

export type TracingTerms = z.output<z.ZodObject<typeof tracingSettings>>;
