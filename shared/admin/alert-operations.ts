import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { isoTime } from "../process/clock.ts";
import { alertName } from "../protocol/identifiers.ts";
import { alertForm, givenAlert, newSigningSecret, sealAlert, showAlert, shownAlert } from "../records/alert-record.ts";
import { removeRecord, setRecord } from "../records/change-record.ts";
import { atGateway, listOf, listRecords, onStore, reads, recordsOf } from "./operation.ts";

const ofOneAlert = {
  ...reads,
  params: z.strictObject({ alert: alertName.describe("The name of the alert target.") }),
  refusals: ["alert_not_found"],
  forAdmins: true,
} as const;

const openAlarm = z.strictObject({
  kind: z.string(),
  subject: z.string().describe("The thing that is affected, such as the name of a machine."),
  text: z.string().describe("One sentence that says what is wrong."),
  began_at: z.iso.datetime(),
  told: z
    .array(z.strictObject({ alert: z.string(), outcome: z.enum(["due", "sent", "given-up"]) }))
    .describe("The targets that were called. A due one did not take the call and is called again, for a day."),
});
export type OpenAlarm = z.output<typeof openAlarm>;

/** The operations of alert targets, which a gateway calls when something is wrong. */
export const alertOperations = {
  listAlerts: onStore({
    ...reads,
    path: "/alerts",
    summary: "List the alert targets; of each URL the host alone",
    answer: recordsOf(z.array(shownAlert).describe("By name.")),
    forAdmins: true,
    run: (_, { alerts }) => listRecords((unread) => alerts.list(unread), showAlert),
  }),
  listAlarms: onStore({
    ...reads,
    path: "/alarms",
    summary: "List what is wrong with the site now, as far as an alert target is to be told of it",
    answer: listOf(z.array(openAlarm)),
    forAdmins: true,
    async run(_, { alarms, alerts }) {
      // A site without targets is judged by nobody.
      const judged = (await alerts.list()).length === 0 ? [] : (await alarms.read()).alarms;
      const open = judged.filter(({ overAt }) => overAt === undefined);
      const data = open.map(({ kind, subject, text, beganAt, calls }) => {
        const told = Object.entries(calls).map(([id, { outcome }]) => ({ alert: id.split(" ")[0] ?? id, outcome }));
        return { kind, subject, text, began_at: isoTime(beganAt), told };
      });
      return { object: "list" as const, data };
    },
  }),
  addAlert: onStore({
    ...reads,
    method: "POST",
    path: "/alerts",
    summary: "Add an alert target, which is called when something is wrong and when that is over",
    body: z.strictObject(givenAlert),
    answer: shownAlert.extend({
      secret: z.string().nullable().describe("The secret of its signatures, this once; null for unsigned formats."),
    }),
    status: 201,
    refusals: ["alert_change_refused"],
    forAdmins: true,
    example: { to: "https://hooks.example.org/T0/B0/x", on: ["machine-away", "budget"], after: "2m", format: "slack" },
    async run({ body: { to, name = nameOf(to), on, after: afterMs, format } }, site) {
      const url = new URL(to);
      const refusal = site.refusalOfAlert?.(url);
      if (refusal !== undefined)
        throw new Fault("invalid_value", { message: `Invalid value for 'to': ${refusal}.`, param: "to" });
      const secret = newSigningSecret();
      const sealed = sealAlert(name, { url: to, secret }, site.peppers);
      const add = (before: unknown) => {
        if (before === undefined) return { host: url.host, on, afterMs, format, sealed };
        const message = `There is an alert target ${name} already: choose another name, or remove it first.`;
        throw new Fault("alert_change_refused", { message, param: "name" });
      };
      const { record } = await setRecord(alertForm, { name }, add, site);
      return { ...showAlert(record), secret: format === "standard" ? secret : null };
    },
  }),
  removeAlert: onStore({
    ...ofOneAlert,
    method: "DELETE",
    path: "/alerts/{alert}",
    summary: "Remove an alert target; no gateway calls it any more",
    answer: z.strictObject({ alert: alertName, state: z.literal("removed") }),
    async run({ params: { alert } }, site) {
      await removeRecord(alertForm, alert, site);
      return { alert, state: "removed" as const };
    },
  }),
  testAlert: atGateway({
    ...ofOneAlert,
    method: "POST",
    path: "/alerts/{alert}/test",
    summary: "Call an alert target now, from the network of this gateway",
    answer: z.strictObject({ alert: alertName, status: z.int().describe("The status of its answer.") }),
    refusals: ["alert_not_found", "upstream_error"],
  }),
};

/** Returns the host of a URL as a name. */
function nameOf(url: string): string {
  return new URL(url).hostname
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, 63);
}
