import { z } from "zod";
import type { FaultCode } from "#shared/fault/fault.ts";
import { fleetListing, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { shownKey } from "#shared/keys/shown-key.ts";
import { shownMachineRecord } from "#shared/machines/shown-machine.ts";
import { shownModelRoute } from "#shared/routes/route-record.ts";
import { linesMedia, manageLine, modelListing } from "#shared/model/model.ts";
import {
  changeBody,
  changedKey,
  cordonBody,
  changedMachineRecord,
  changedModelRoute,
  elsewhereBody,
  entryList,
  extendBody,
  issueBody,
  issuedKey,
  keyList,
  labelsBody,
  listQuery,
  logQuery,
  machineRecordBody,
  machineRecordList,
  madeJoin,
  manageParams,
  manageRequest,
  modelRouteList,
  modelsQuery,
  nothing,
  oneKey,
  oneMachine,
  oneRoute,
  pairBody,
  removedMachineRecord,
  removedModelRoute,
  renameBody,
  revokedKey,
  revokeQuery,
  rotateBody,
  routeBody,
  routeQuery,
  shownSite,
  usageList,
  usageQuery,
} from "./admin-schemas.ts";

/** One operation of the admin API. Its route and its documentation are both generated from this. */
export interface AdminOperation<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the API's prefix, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
  readonly status: 200 | 201;
  /**
   * The media type of an answer that is a stream of lines, where each line matches `answer`. Undefined for one JSON
   * object.
   */
  readonly media?: typeof linesMedia;
  /** The faults that this operation may return besides those of every operation. */
  readonly refusals: readonly FaultCode[];
  /** An example body. It holds no secret. */
  readonly example?: object;
}

export const adminPrefix = "/admin/v1";

const asks = { params: nothing, query: nothing, body: nothing, status: 200, refusals: [] } as const;
const asksOneKey = { ...asks, params: oneKey, refusals: ["key_not_found"] } as const;
const changesOneKey = {
  ...asksOneKey,
  method: "POST",
  answer: changedKey,
  refusals: ["key_not_found", "key_change_refused"],
} as const;
const revokes = {
  ...asksOneKey,
  summary: "Revoke a key for good; with an admin key also the admin and viewer keys that it issued, recursively",
  query: revokeQuery,
  answer: revokedKey,
} as const;

const changesOneMachine = {
  ...asks,
  method: "POST",
  params: oneMachine,
  answer: changedMachineRecord,
  refusals: ["machine_not_found", "machine_change_refused"],
} as const;

const asksOneRoute = { ...asks, params: oneRoute, refusals: ["route_not_found"] } as const;

/**
 * All operations of the admin API. An admin key may call all of them, a viewer key only those with the method `GET`.
 */
export const adminApi = {
  listKeys: {
    ...asks,
    method: "GET",
    path: "/keys",
    summary: "List keys without their secrets, the oldest first; those that expired for another 90 days",
    query: listQuery,
    answer: keyList,
  },
  issueKey: {
    ...asks,
    method: "POST",
    path: "/keys",
    summary: "Make a key, and show it this once",
    body: issueBody,
    answer: issuedKey,
    status: 201,
    refusals: ["key_change_refused"],
    example: {
      name: "alice",
      scopes: ["llama3.2", "qwen*"],
      ttl: "90d",
      rpm: 60,
      budget: { tokens: 1e6, per: "month" },
    },
  },
  showKey: {
    ...asksOneKey,
    method: "GET",
    path: "/keys/{id}",
    summary: "Show a key without its secret",
    answer: shownKey,
  },
  changeKey: {
    ...changesOneKey,
    method: "PATCH",
    path: "/keys/{id}",
    summary: "Change the terms of a key that are named; null takes one away",
    body: changeBody,
    example: { name: "alice's laptop", machines: ["attic"], rpm: 120, budget: null },
  },
  deleteKey: { ...revokes, method: "DELETE", path: "/keys/{id}" },
  revokeKey: { ...revokes, method: "POST", path: "/keys/{id}/revoke" },
  rotateKey: {
    ...changesOneKey,
    path: "/keys/{id}/rotate",
    summary: "Give a key another secret, and show it this once; the one before stays good for the grace",
    body: rotateBody,
    answer: issuedKey,
    example: { grace: "24h" },
  },
  extendKey: {
    ...changesOneKey,
    path: "/keys/{id}/extend",
    summary: "Make a key valid for longer, from now on",
    body: extendBody,
    example: { ttl: "90d" },
  },
  disableKey: {
    ...changesOneKey,
    path: "/keys/{id}/disable",
    summary: "Refuse a key until it is enabled again, and end its requests",
  },
  enableKey: { ...changesOneKey, path: "/keys/{id}/enable", summary: "Accept a key again that was disabled" },
  readLog: {
    ...asks,
    method: "GET",
    path: "/log",
    summary: "The audit trail: the latest changes of keys, machines and routes, and their authors",
    query: logQuery,
    answer: entryList,
  },
  readUsage: {
    ...asks,
    method: "GET",
    path: "/usage",
    summary: "The usage of keys, by day and model",
    query: usageQuery,
    answer: usageList,
  },
  listModels: {
    ...asks,
    method: "GET",
    path: "/models",
    summary: "The models that every machine offers at this moment, or the one that is named",
    query: modelsQuery,
    answer: modelListing,
    refusals: ["machine_not_found", "agent_offline"],
  },
  listMachines: {
    ...asks,
    method: "GET",
    path: "/fleet",
    summary: "Every machine as this gateway sees it, what it is busy with, and why it gets no work where it gets none",
    answer: fleetListing,
  },
  listMachineRecords: {
    ...asks,
    method: "GET",
    path: "/machines",
    summary: "List the records of machines: how each is paired and which models it may offer",
    answer: machineRecordList,
  },
  showMachineRecord: {
    ...asks,
    method: "GET",
    path: "/machines/{machine}",
    summary: "Show the record of a machine",
    params: oneMachine,
    answer: shownMachineRecord,
    refusals: ["machine_not_found"],
  },
  showSite: {
    ...asks,
    method: "GET",
    path: "/site",
    summary: "Show the site as its machines have to know it",
    answer: shownSite,
  },
  pairMachine: {
    ...asks,
    method: "POST",
    path: "/machines/{machine}/pair",
    summary: "Make a join line for a machine, and show it this once; a line that was not used before is good no more",
    params: oneMachine,
    body: pairBody,
    answer: madeJoin,
    status: 201,
    refusals: ["machine_change_refused", "machine_name_used"],
    example: { models: ["llama*", "qwen*"], ttl: "10m" },
  },
  renameMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/rename",
    summary: "Give a paired machine another name; its jobs under the old one end",
    body: renameBody,
    refusals: [...changesOneMachine.refusals, "machine_name_used"],
    example: { name: "loft" },
  },
  revokeMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/revoke",
    summary: "Take the key of a machine back for good, at all gateways at once; its jobs end",
  },
  cordonMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/cordon",
    summary: "Give a machine no new jobs; makes its record if there is none",
    body: cordonBody,
    example: { reason: "new fans" },
  },
  uncordonMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/uncordon",
    summary: "Give a machine jobs again that was cordoned",
  },
  labelMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/labels",
    summary: "Set the labels of a machine, by which routes name it; makes its record if there is none",
    body: labelsBody,
    example: { labels: ["fast", "mac"] },
  },
  markMachine: {
    ...changesOneMachine,
    path: "/machines/{machine}/elsewhere",
    summary: "Say whether a machine's models run elsewhere, such as at a cloud; makes its record if there is none",
    body: elsewhereBody,
    example: { elsewhere: true },
  },
  setMachineRecord: {
    ...asks,
    method: "PATCH",
    path: "/machines/{machine}",
    summary: "Set which models a machine may offer, for all gateways at once; makes its record if there is none",
    params: oneMachine,
    body: machineRecordBody,
    answer: changedMachineRecord,
    refusals: ["machine_change_refused"],
    example: { models: ["llama*", "qwen*"] },
  },
  removeMachineRecord: {
    ...asks,
    method: "DELETE",
    path: "/machines/{machine}",
    summary: "Remove the record of a machine that is not paired, or whose key was revoked an hour ago",
    params: oneMachine,
    answer: removedMachineRecord,
    refusals: ["machine_not_found", "machine_change_refused"],
  },
  listRoutes: {
    ...asks,
    method: "GET",
    path: "/routes",
    summary: "List the names that stand for models, each with its targets",
    answer: modelRouteList,
  },
  showRoute: {
    ...asksOneRoute,
    method: "GET",
    path: "/routes/{route}",
    summary: "Show a route",
    answer: shownModelRoute,
  },
  setRoute: {
    ...asksOneRoute,
    method: "PUT",
    path: "/routes/{route}",
    summary: "Let a name stand for models, for all gateways at once; makes the route if there is none",
    body: routeBody,
    answer: changedModelRoute,
    refusals: ["route_change_refused"],
    example: { targets: [{ model: "qwen3-coder:30b" }, { model: "gpt-oss:20b", machines: ["attic"] }] },
  },
  removeRoute: {
    ...asksOneRoute,
    method: "DELETE",
    path: "/routes/{route}",
    summary: "Remove a route; its name then means the model of that name again, if there is one",
    answer: removedModelRoute,
  },
  explainRoute: {
    ...asks,
    method: "GET",
    path: "/route",
    summary:
      "The machines that a request for a model would be offered to, in their order, and the reasons against the others",
    query: routeQuery,
    answer: shownRoute,
  },
  manageModel: {
    ...asks,
    method: "POST",
    path: "/machines/{machine}/models/{action}",
    summary:
      "Pull, remove, load or unload a model on a machine whose owner allows it. The answer is lines of JSON, which " +
      "tell how far it has come and, with the last one, how it went; leaving it unread to the end stops the work",
    params: manageParams,
    body: manageRequest,
    answer: manageLine,
    media: linesMedia,
    refusals: [
      "unsupported_value",
      "model_not_found",
      "machine_not_found",
      "upstream_error",
      "agent_disconnected",
      "agent_offline",
      "runtime_offline",
      "server_is_overloaded",
      "shutting_down",
      "upstream_timeout",
    ],
  },
} as const satisfies Record<string, AdminOperation>;

/**
 * The operation that returns this API's OpenAPI document. The document holds no secret, so it is readable without a
 * key.
 */
export const describeApi = {
  ...asks,
  method: "GET",
  path: "/openapi.json",
  summary: "This document",
  answer: z.looseObject({ openapi: z.string() }),
} as const satisfies AdminOperation;
