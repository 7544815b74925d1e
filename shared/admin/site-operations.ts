import { z } from "zod";
import { atGateway, reads } from "./operation.ts";

const time = z.iso.datetime();

const shownSetting = z.object({
  name: z.string(),
  value: z.string().nullable().describe("Null for a setting that is not set, and for a secret."),
  source: z.enum(["default", "environment", "file"]),
  secret: z.boolean(),
});
export type ShownSetting = z.output<typeof shownSetting>;

const shownGateway = z.object({
  name: z.string(),
  version: z.string(),
  is_this: z.boolean().describe("True for the gateway that answers."),
  started_at: time.nullable().describe("Null for a gateway of an earlier version."),
  running: z.int().nullable().describe("Its requests on machines; null if this gateway does not hear the others."),
});

const siteStatus = z.object({
  gateways: z.array(shownGateway),
  store: z.string().describe("Where keys and records are, without a password."),
  broker: z.string().describe("Where NATS is, without a password."),
  problems: z.array(z.string()).describe("The problems of this gateway, in words."),
  certificates: z
    .array(z.object({ setting: z.string(), names: z.string(), expires_at: time }))
    .describe("Each with the setting that names its file."),
  backed_up_at: time.nullable().describe("The last `trunkline backup`; null if none is known."),
  // Gateways of 0.2.0 leave it out.
  trace_url: z
    .string()
    .nullish()
    .describe("Where people look at a trace, with {trace} in place of its id; null if TRUNKLINE_TRACE_URL is not set."),
  settings: z.array(shownSetting).nullable().describe("Of this gateway. Null for a viewer."),
});
export type SiteStatus = z.output<typeof siteStatus>;

export const showSiteStatus = atGateway({
  ...reads,
  path: "/site/status",
  summary: "The gateways of the site, the settings of this one without secrets, certificates and the last backup",
  answer: siteStatus,
});
