import { randomBytes } from "node:crypto";
import { z } from "zod";
import { alarmKinds } from "../alerts/alarm.ts";
import { alertFormats } from "../alerts/alert-formats.ts";
import type { Peppers } from "../keys/pepper.ts";
import { seal, unseal } from "../keys/seal.ts";
import { dayMs } from "../process/clock.ts";
import { formatDuration } from "../process/quantities.ts";
import { alertName } from "../protocol/identifiers.ts";
import type { RecordStore } from "./key-store.ts";
import { type RecordForm, recordFields, shownTimes, showTimes } from "./record-form.ts";
import { durationOrNone } from "./shown-key.ts";

/** Maximum number of alert targets of a site. */
export const alertTargetsMax = 32;
export const alertUrlCharactersMax = 2_048;

/** The record of an alert target. The store cannot read its URL, which may be a secret. Unknown fields are kept. */
export const alertRecord = z.looseObject({
  name: alertName,
  /** The host of the URL, for lists. */
  host: z.string(),
  /** The kinds of alarms of which it is told. A newer version may have further ones. */
  on: z.array(z.string()).readonly(),
  /** The time that an alarm lasts before it is told. Undefined for that of its kind. */
  afterMs: z.int().nonnegative().optional(),
  format: z.enum(alertFormats),
  /** The URL and the signing secret, encrypted under the name and written as base64. */
  sealed: z.string(),
  ...recordFields,
});
export type AlertRecord = Readonly<z.output<typeof alertRecord>>;
export type AlertStore = RecordStore<AlertRecord>;

/** The secrets of a target: its URL, and `whsec_` with the key of its signatures. */
interface AlertSecrets {
  readonly url: string;
  readonly secret: string;
}

/** Returns a new secret for signatures, in the form of Standard Webhooks. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

export function sealAlert(name: string, { url, secret }: AlertSecrets, { current }: Peppers): string {
  return seal(Buffer.from(JSON.stringify({ url, secret })), current.alertsKey, name).toString("base64");
}

/** Returns the secrets of a target, and whether another pepper than the current one encrypts them. Undefined if they cannot be read. */
export function openAlert({ name, sealed }: Pick<AlertRecord, "name" | "sealed">, peppers: Peppers) {
  const opened = unseal(Buffer.from(sealed, "base64"), peppers.alertsKeys(), name);
  return opened && { ...(JSON.parse(opened.bytes.toString()) as AlertSecrets), isOld: opened.at > 0 };
}

function isPlainUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

/** A target as an admin gives it. */
export const givenAlert = {
  name: alertName.optional().describe("The name of the target; by default that of its host."),
  to: z
    .string()
    .max(alertUrlCharactersMax, `must have at most ${alertUrlCharactersMax} characters (alertUrlCharactersMax)`)
    .refine(isPlainUrl, "must be a URL that begins with https:// and names no user or password")
    .describe("The URL to call. It is stored encrypted, and only its host is shown again."),
  on: z
    .array(z.enum(alarmKinds, `must be some of ${alarmKinds.join(", ")}`))
    .min(1, "must name at least one kind of alarm")
    .max(alarmKinds.length)
    .transform((given) => alarmKinds.filter((kind) => given.includes(kind)))
    .describe("The kinds of alarms to tell it of."),
  after: durationOrNone
    .refine((ms) => ms <= dayMs, "must be at most 1d")
    .optional()
    .describe("How long an alarm must last before it is told, such as 2m; by default as long as its kind has it."),
  format: z
    .enum(alertFormats, `must be one of ${alertFormats.join(", ")}`)
    .default("standard")
    .describe("standard: signed JSON, by Standard Webhooks. The others are as these services read them."),
};

/** A target as the command line and the admin API show it. */
export const shownAlert = z.strictObject({
  alert: alertName,
  host: z.string().describe("The host of its URL."),
  on: z.array(z.string()).readonly().describe("The kinds of alarms of which it is told."),
  after: z.string().nullable().describe("How long an alarm lasts before it is told; null for that of its kind."),
  format: z.enum(alertFormats),
  ...shownTimes,
});
export type ShownAlert = z.output<typeof shownAlert>;

export function showAlert(record: AlertRecord): ShownAlert {
  const { name, host, on, afterMs, format } = record;
  const after = afterMs === undefined ? null : formatDuration(afterMs);
  return { alert: name, host, on, after, format, ...showTimes(record) };
}

export const alertForm = {
  at: "alerts",
  noun: "alert",
  about: "alert",
  schema: alertRecord,
  max: alertTargetsMax,
  full: `There are ${alertTargetsMax} alert targets already (alertTargetsMax): remove one first.`,
  unknown: (name) => `There is no alert target ${name}: \`trunkline alerts list\` shows all.`,
  detail: ({ host, on, afterMs, format }) => ({
    host,
    on: on.join(", "),
    format,
    ...(afterMs !== undefined && { after: formatDuration(afterMs) }),
  }),
} as const satisfies RecordForm<AlertRecord>;
