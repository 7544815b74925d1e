import { createHmac } from "node:crypto";
import type { AlarmCall } from "#shared/alerts/alarm.ts";
import type { AlertFormat } from "#shared/alerts/alert-formats.ts";
import { isoTime } from "#shared/process/clock.ts";

/** Discord takes 2,000 characters, which an escape may double. */
const textCharactersMax = 1_000;

const json = { "content-type": "application/json" } as const;
const plain = { "content-type": "text/plain; charset=utf-8" } as const;
const beginnings = { began: "Trunkline", over: "Trunkline, over", test: "Trunkline, test" } as const;

/** Signs a message: `secret` is `whsec_` and a key in base64, and `nowMs` the time of this attempt. */
interface Signing {
  readonly secret: string;
  readonly nowMs: number;
}

/** Returns the body and the headers of a call, as the format of its target has them. */
export function alertMessage(format: AlertFormat, call: AlarmCall, signing: Signing) {
  const { kind, text } = call.alarm;
  const title = `${beginnings[call.state]}: ${kind}`;
  const line = `${beginnings[call.state]}: ${text}`.slice(0, textCharactersMax);
  switch (format) {
    case "standard":
      return signed(call, signing);
    case "slack": {
      // Slack reads the text between `<` and `>` as a link or as a mention of people.
      const escaped = line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
      return { headers: json, body: JSON.stringify({ text: escaped }) };
    }
    case "discord": {
      // Discord would make a link of `[name](address)`.
      const content = line.replace(/[\\`*_~|#<>[\]()]/g, "\\$&");
      return { headers: json, body: JSON.stringify({ content, allowed_mentions: { parse: [] } }) };
    }
    case "ntfy":
      return { headers: { ...plain, title, priority: call.state === "began" ? "high" : "default" }, body: text };
    case "plain":
      return { headers: plain, body: line };
  }
}

/** Signs a call as Standard Webhooks has it. */
function signed({ id, state, alarm, at }: AlarmCall, { secret, nowMs }: Signing) {
  const { id: alarmId, beganAt, ...told } = alarm;
  const data = { alarm: alarmId, ...told, began_at: isoTime(beganAt) };
  const body = JSON.stringify({ type: `alarm.${state}`, timestamp: isoTime(at), data });
  const timestamp = String(Math.floor(nowMs / 1_000));
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
  return { headers: { ...json, ...headers }, body };
}
