import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { findKeys } from "../records/find-keys.ts";
import { machineName } from "../protocol/identifiers.ts";
import { modelId } from "../protocol/model.ts";
import { showRequest, shownRequest } from "../requests/shown-request.ts";
import { runningRequest } from "../requests/running-request.ts";
import {
  atGateway,
  onStore,
  keyText,
  listOf,
  pageLength,
  reads,
  requestCursor,
  timeInUrl,
  yesOrNo,
} from "./operation.ts";

const requestList = listOf(z.array(shownRequest).describe("The latest to end first.")).extend({
  next: z.string().nullable().describe("Where to go on, as before; null when nothing older is left."),
  unread: z.int().nonnegative().describe("Records of another version of Trunkline that are missing here."),
});

const cursor = z.string().regex(requestCursor, "must be the next of a page");

const ofOneRequest = {
  params: z.strictObject({ id: z.string().max(100).describe("The id that the client got as x-request-id.") }),
  refusals: ["request_not_found"],
} as const;

/** The operations of requests that run and of the records of those that ended. */
export const requestOperations = {
  listRunning: atGateway({
    ...reads,
    path: "/requests/running",
    summary: "Requests that were admitted and have not ended, of all gateways, by their arrival",
    answer: listOf(z.array(runningRequest)).extend({
      left_out: z.int().nonnegative().describe("Requests that gateways with very many of them left out."),
      silent: z.array(z.string()).describe("The hosts of gateways that did not tell in time, or are too old to."),
    }),
  }),
  cancelRequest: atGateway({
    ...reads,
    ...ofOneRequest,
    method: "POST",
    path: "/requests/{id}/cancel",
    summary:
      "Cancel a request that runs, at whichever gateway; its client gets cancelled_by_operator, and no machine goes on",
    answer: z.strictObject({
      id: z.string(),
      state: z.literal("cancelled"),
      key: z.string(),
      model: z.string().nullable(),
    }),
  }),
  listRequests: onStore({
    ...reads,
    path: "/requests",
    summary: "Requests that ended, of all gateways, the latest first, without any text of prompts and answers",
    query: z.strictObject({
      failed: yesOrNo.optional().describe("Only requests that failed, or only those that did not."),
      key: keyText.optional(),
      model: modelId.optional().describe("Only for this model, as it was asked for or as its machine names it."),
      machine: machineName.optional().describe("Only those that this machine was offered."),
      since: timeInUrl.optional().describe("Only those that arrived then or later."),
      until: timeInUrl.optional().describe("Only those that arrived before then."),
      before: cursor.optional().describe("Only those that ended before: the next of the page before."),
      limit: pageLength,
    }),
    answer: requestList,
    refusals: ["key_not_found"],
    async run({ query: { failed, key, model, machine, since, until, before, limit } }, { requests, keys }) {
      const [sinceMs, untilMs] = [since, until].map((each) => (each === undefined ? undefined : Date.parse(each)));
      const keyIds = key === undefined ? undefined : await findKeys(key, keys);
      const wanted = { failed, keyIds, model, machine, sinceMs, untilMs };
      const { found, next = null, unread } = await requests.find(wanted, { limit, before });
      return { object: "list" as const, data: found.map(({ record }) => showRequest(record)), next, unread };
    },
  }),
  showRequest: onStore({
    ...reads,
    path: "/requests/{id}",
    summary: "The way of one request: who asked, which machines were tried and why, and how it ended",
    ...ofOneRequest,
    answer: shownRequest,
    async run({ params: { id } }, { requests, place }) {
      const record = await requests.get(id);
      if (record !== undefined) return showRequest(record);
      const where = place === undefined ? "" : ` in ${place}`;
      const message = `There is no record of the request ${id}${where}: it is still running, its key was refused, or its record was dropped (TRUNKLINE_REQUESTS_MAX, TRUNKLINE_REQUESTS_DAYS).`;
      throw new Fault("request_not_found", { message, param: "id" });
    },
  }),
};
