import { z } from "zod";
import type { FaultCode } from "#shared/fault/fault.ts";
import { fleetListing, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { shownKey } from "#shared/keys/shown-key.ts";
import { linesMedia, manageLine, modelListing } from "#shared/model/model.ts";
import {
  changeBody,
  changedKey,
  changedMachineRecord,
  entryList,
  extendBody,
  issueBody,
  issuedKey,
  keyList,
  listQuery,
  logQuery,
  machineRecordBody,
  machineRecordList,
  manageParams,
  manageRequest,
  modelsQuery,
  nothing,
  oneKey,
  oneMachine,
  removedMachineRecord,
  revokedKey,
  revokeQuery,
  rotateBody,
  routeQuery,
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
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
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
    summary: "Who did what to which key or machine: the latest entries of the audit trail",
    query: logQuery,
    answer: entryList,
  },
  readUsage: {
    ...asks,
    method: "GET",
    path: "/usage",
    summary: "What keys used, by day and model",
    query: usageQuery,
    answer: usageList,
  },
  listModels: {
    ...asks,
    method: "GET",
    path: "/models",
    summary: "What every machine offers at this moment, or the one that is named",
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
    summary: "List the records of machines: which models each may offer. A machine without a record may offer all",
    answer: machineRecordList,
  },
  setMachineRecord: {
    ...asks,
    method: "PATCH",
    path: "/machines/{machine}",
    summary: "Set which models a machine may offer, for all gateways at once; makes its record if there is none",
    params: oneMachine,
    body: machineRecordBody,
    answer: changedMachineRecord,
    refusals: ["key_change_refused"],
    example: { models: ["llama*", "qwen*"] },
  },
  removeMachineRecord: {
    ...asks,
    method: "DELETE",
    path: "/machines/{machine}",
    summary: "Remove the record of a machine, which may offer every model again",
    params: oneMachine,
    answer: removedMachineRecord,
    refusals: ["machine_not_found"],
  },
  explainRoute: {
    ...asks,
    method: "GET",
    path: "/route",
    summary: "Which machines a request for a model would be offered to, in which order, and why the others not",
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
