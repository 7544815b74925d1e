import packageJson from "../../../package.json" with { type: "json" };
import type { AdminApi } from "#shared/admin/admin-api.ts";
import { alertOperations } from "#shared/admin/alert-operations.ts";
import { keepOperations } from "#shared/admin/keep-operations.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { listRecords, requestCursor } from "#shared/admin/operation.ts";
import { requestOperations } from "#shared/admin/request-operations.ts";
import { routeOperations } from "#shared/admin/route-operations.ts";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import { showSiteStatus } from "#shared/admin/site-operations.ts";
import { type AlarmCall, alarmKinds } from "#shared/alerts/alarm.ts";
import { isoTime } from "#shared/process/clock.ts";
import { furtherAbilities } from "#shared/protocol/model.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { alertForm, type AlertRecord } from "#shared/records/alert-record.ts";
import { findRecord } from "#shared/records/change-record.ts";
import { showKeep } from "#shared/records/keep-record.ts";
import {
  holderOf,
  isOfConsole,
  makeSession,
  mayEndOthers,
  sessionUnknown,
  signInUrl,
} from "#shared/records/session-record.ts";
import { showSession } from "#shared/records/shown-session.ts";
import { askerOf } from "./operations-access.ts";
import { answering, type Handle, tellingLines } from "./serve-operation.ts";
import { viewSite } from "./site-view.ts";
import { noRequest } from "./tell-events.ts";

/** The operations that need more than the store. */
type GatewayOperation = {
  [Name in keyof AdminApi]: AdminApi[Name] extends { readonly run: unknown } ? never : Name;
}[keyof AdminApi];

const { listModels, listMachines, manageModel } = machineOperations;
const { showMe, listSessions, makeSignInLink, endSession, endSessions } = sessionOperations;

export const gatewayHandles: Readonly<Record<GatewayOperation, Handle>> = {
  listModels: answering(listModels, ({ query }, { fleet }) => fleet.list(query.machine)),
  listMachines: answering(listMachines, (_, { view }) => view.machines()),
  manageModel: tellingLines(manageModel, async ({ params, body: { model } }, { tell, signal }, parts) => {
    const { fleet, log, actor } = parts;
    const { machine, action } = params;
    log.info({ ...actor, machine, action, model }, "a machine is asked to manage a model");
    await fleet.manage(machine, {
      action,
      model,
      signal,
      onProgress: ({ status, completedBytes = null, totalBytes = null }) =>
        tell({ status, completed_bytes: completedBytes, total_bytes: totalBytes }),
    });
  }),
  showPlan: answering(keepOperations.showPlan, async (_, { keeper, keeps }) => {
    const [{ steps }, records] = await Promise.all([keeper.plan(), keeps.list()]);
    const data = steps.map(({ machine = null, ...step }) => ({ ...step, machine }));
    return { object: "list" as const, data, keeps: records.map(showKeep) };
  }),
  testAlert: answering(alertOperations.testAlert, async ({ params: { alert } }, parts) => {
    const { alertSender, clock, log, actor } = parts;
    const record = await findRecord(alertForm, alert, parts);
    log.info({ ...actor, alert }, "an alert target is called for a test");
    const status = await alertSender.send(record, testOf(record, clock.wall()), new AbortController().signal);
    return { alert, status };
  }),
  explainRoute: answering(routeOperations.explainRoute, async ({ query }, { view }) => {
    const { model, kind: asked, tools, vision, prompt_tokens: promptTokens } = query;
    const further = furtherAbilities.find((each) => each === asked);
    const isOwn = asked === "chat" || asked === "complete" || asked === "embed" || asked === "rerank";
    const capability = further ?? (asked === "embed" ? "embedding" : "completion");
    const kind = isOwn ? asked : "media";
    const imageParam = vision ? "messages" : undefined;
    return view.route({ kind, modelId: model, needs: { capability, tools, imageParam, promptTokens } });
  }),
  showMe: answering(showMe, async (_, { admin, session, role, addresses, currency }) => ({
    name: admin.name,
    key: admin.id,
    role,
    session: session === undefined ? null : showSession(session),
    everywhere: session !== undefined && mayEndOthers(session),
    base_url: addresses().baseUrl,
    currency,
    version: packageJson.version,
  })),
  listSessions: answering(listSessions, (_, { sessions, clock }) =>
    listRecords(
      async (unread) =>
        (await sessions.list(unread)).filter(isOfConsole).filter(({ expiresAt }) => expiresAt > clock.wall()),
      showSession,
    ),
  ),
  makeSignInLink: answering(makeSignInLink, async ({ body: { role } }, parts) => {
    const { token, record } = await makeSession({ kind: "link", role, key: parts.admin }, parts);
    const url = signInUrl(parts.addresses().consoleUrl, token.text);
    return { token: token.text, url, expires_at: isoTime(record.expiresAt) };
  }),
  endSession: answering(endSession, async ({ params: { id } }, { sessions, log, actor }) => {
    if (!(await sessions.remove(id))) throw sessionUnknown();
    log.info({ ...actor, session: id }, "a session was ended");
    return { ended: [id] };
  }),
  endSessions: answering(endSessions, async ({ query: { key } }, { sessions, log, actor }) => {
    const all = (await sessions.list()).filter((each) => key === undefined || holderOf(each) === key);
    for (const { id } of all) await sessions.remove(id);
    log.info({ ...actor, sessions: all.length, key }, "sessions were ended");
    return { ended: all.map(({ id }) => id) };
  }),
  showSiteStatus: answering(showSiteStatus, (_, { siteParts, role }) => viewSite(role, siteParts)),
  listRunning: answering(requestOperations.listRunning, async (_, { running }) => ({
    object: "list" as const,
    ...(await running.list()),
  })),
  cancelRequest: answering(requestOperations.cancelRequest, async ({ params: { id } }, { running, actor }) => {
    await running.cancel(id, actor);
    return { id, state: "cancelled" as const };
  }),
  async followSite(request, reply, { events }) {
    const { "last-event-id": heard } = request.headers;
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    const { admin, session } = askerOf(request);
    const owner = { key: admin.id, session: session?.id };
    await events.follow(reply.raw, { owner, heard: isPlace(heard) ? heard : undefined });
    return reply.hijack();
  },
};

/** Returns a call of a target about an alarm that is none. */
function testOf({ name, on }: AlertRecord, at: number): AlarmCall {
  const kind = alarmKinds.find((each) => on.includes(each)) ?? "machine-away";
  const text = `This is a test of the alert target ${name}. Nothing is wrong.`;
  return {
    id: newToken("msg_"),
    state: "test",
    at,
    alarm: { id: newToken("test_"), kind, subject: name, beganAt: at, text },
  };
}

function isPlace(heard: unknown): heard is string {
  return typeof heard === "string" && (heard === noRequest || requestCursor.test(heard));
}
