import { createHmac } from "node:crypto";
import type { AlarmCall } from "#shared/alerts/alarm.ts";
import type { AlertFormat } from "#shared/alerts/alert-formats.ts";
import { isoTime } from "#shared/process/clock.ts";

/** Discord takes 2,000 characters. */
const textCharactersMax = 1_900;

interface AlertMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Signing {
  /** `whsec_` and the key in base64. */
  readonly secret: string;
  /** The time of this attempt, in milliseconds since 1970. */
  readonly nowMs: number;
}

const json = { "content-type": "application/json" } as const;
const text = { "content-type": "text/plain; charset=utf-8" } as const;
const beginnings = { began: "Trunkline", over: "Trunkline, over", test: "Trunkline, test" } as const;

/** Returns the body and the headers of a call, as the format of its target has them. */
export function alertMessage(format: AlertFormat, call: AlarmCall, signing: Signing): AlertMessage {
  const { kind, text: told } = call.alarm;
  const title = `${beginnings[call.state]}: ${kind}`;
  const line = `${beginnings[call.state]}: ${told}`.slice(0, textCharactersMax);
  switch (format) {
    case "standard":
      return signed(call, signing);
    case "slack":
      return { headers: json, body: JSON.stringify({ text: line.replace(/[&<>]/g, (each) => entities[each] ?? "") }) };
    case "discord":
      return { headers: json, body: JSON.stringify({ content: line, allowed_mentions: { parse: [] } }) };
    case "ntfy":
      return { headers: { ...text, title, priority: call.state === "began" ? "high" : "default" }, body: told };
    case "plain":
      return { headers: text, body: line };
  }
}

/** Slack reads the text between `<` and `>` as a link or as a mention of people. */
const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Signs a call as Standard Webhooks has it. */
function signed({ id, state, alarm, at }: AlarmCall, { secret, nowMs }: Signing): AlertMessage {
  const { id: alarmId, kind, subject, beganAt, text: told } = alarm;
  const data = { alarm: alarmId, kind, subject, text: told, began_at: isoTime(beganAt) };
  const body = JSON.stringify({ type: `alarm.${state}`, timestamp: isoTime(at), data });
  const timestamp = String(Math.floor(nowMs / 1_000));
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
  return { headers: { ...json, ...headers }, body };
}
