import { z } from "zod";
import { auditEntry } from "#shared/keys/audit-entry.ts";
import { duration, durationOrNone, formatDuration, shownKey } from "#shared/keys/shown-key.ts";
import { adminTtlMsMax, defaultTtlMs } from "#shared/keys/issue-key.ts";
import { boundMachines, keyLimits, keyName, keyStates, scopes } from "#shared/keys/key-record.ts";
import { keyId, keyKinds } from "#shared/keys/key-token.ts";
import { defaultGraceMs } from "#shared/keys/change-key.ts";
import { modelPatterns, shownMachineRecord } from "#shared/machines/machine-record.ts";
import { errorLine, modelId } from "#shared/model/model.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { manageActions } from "#shared/protocol/job-bodies.ts";
import { usageRow } from "#shared/usage/usage.ts";

const perPageMax = 1_000;
const perPageDefault = 100;

/** The length of a page, as a number in a URL. */
const pageLength = z.preprocess(
  (text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int().min(1).max(perPageMax).default(perPageDefault).describe("How many at most."),
);
const yesOrNo = z.stringbool({ truthy: ["true"], falsy: ["false"] });
const day = z.iso.date("must be a day, such as 2026-01-31");
const ttl = duration.prefault(formatDuration(defaultTtlMs));

/** For a new key, null means the same as a missing field. In a change, null removes the limit. */
const limits = {
  machines: boundMachines.nullish().describe("The machines that the key is bound to; null for all."),
  rpm: keyLimits.shape.requestsPerMinute.nullable().describe("Requests a minute; null for no limit."),
  tpm: keyLimits.shape.tokensPerMinute.nullable().describe("Tokens a minute; null for no limit."),
  concurrency: keyLimits.shape.concurrency.nullable().describe("Requests under way at once; null for no limit."),
  budget: keyLimits.shape.budget.nullable().describe("Tokens a calendar day or month (UTC); null for no limit."),
};

export const nothing = z.strictObject({});

/** The path parameter of one key. */
export const oneKey = z.strictObject({ id: keyId.describe("The id of a key: what stands after its prefix.") });

export const listQuery = z.strictObject({
  state: z.enum(keyStates).optional().describe("Only keys in this state."),
  limit: pageLength,
  after: keyId.optional().describe("The id of the last key of the page before."),
});

export const issueBody = z
  .strictObject({
    kind: z
      .enum(keyKinds)
      .default("model")
      .describe("Keys of kind admin use the admin API, keys of kind viewer only read there; neither calls models."),
    name: keyName.describe("What to call the key in lists."),
    scopes: scopes.default(["*"]).describe("The models it may call: ids, names or patterns with *."),
    ttl: ttl.describe("How long it is valid from now on. An admin key ends no later than the one that issues it."),
    ...limits,
  })
  .refine(({ kind, ttl: ttlMs }) => kind !== "admin" || ttlMs <= adminTtlMsMax, {
    message: `an admin key is valid for ${formatDuration(adminTtlMsMax)} at most`,
    path: ["ttl"],
  });

export const changeBody = z.strictObject({ name: keyName.optional(), scopes: scopes.optional(), ...limits });
export type NamedTerms = z.output<typeof changeBody>;

export const rotateBody = z.strictObject({
  grace: durationOrNone
    .prefault(formatDuration(defaultGraceMs))
    .describe("How long old secrets stay good at most; 0s when one has leaked."),
  kind: z
    .enum(keyKinds)
    .optional()
    .describe("The kind that the key must have; by default model, and for the key of the request its own."),
});

export const extendBody = z.strictObject({ ttl: ttl.describe("How long it is valid from now on.") });

export const logQuery = z.strictObject({ limit: pageLength, key: keyId.optional().describe("Only of this key.") });

export const usageQuery = z.strictObject({
  from: day.optional().describe("The first day (UTC); by default 29 days before the last one."),
  to: day.optional().describe("The last day (UTC); by default today."),
  key: keyId.optional().describe("Only of this key."),
});
export type UsageQuery = z.output<typeof usageQuery>;

const replicated = z
  .boolean()
  .optional()
  .describe(
    "Told of a change that takes a right away, where Redis has a replica: whether one has the change. At false a failover " +
      "can lose it: repeat it until it is true.",
  );

export const changedKey = shownKey.extend({ replicated });
export type ChangedKey = z.output<typeof changedKey>;

/** A key with its secret. The secret is shown once, to the client that made it. */
export const issuedKey = changedKey.extend({ key: z.string().describe("The key itself. It cannot be shown again.") });

export const keyList = z.strictObject({
  object: z.literal("list"),
  data: z.array(shownKey),
  has_more: z.boolean().describe("Whether there is a next page, after the last of these."),
});

export const revokeQuery = z.strictObject({
  with_issued: yesOrNo
    .default(false)
    .describe("Whether the model keys that an admin key issued, itself or through others, are revoked too."),
});

export const revokedKey = z.strictObject({
  id: keyId,
  state: z.literal("revoked"),
  replicated,
  revoked_with_it: z
    .array(keyId)
    .optional()
    .describe("The keys that this admin key issued, itself or through others, and that were revoked with it."),
  issued_and_stay: z
    .array(keyId)
    .optional()
    .describe("The model keys that this admin key issued, itself or through others, and that still work."),
});

export const shownEntry = auditEntry.extend({
  at: z.iso.datetime(),
  key: keyId.nullable().describe("The key that it was done to; null where it was a machine."),
  machine: machineName.nullable().describe("The machine whose record it was done to; null where it was a key."),
  detail: auditEntry.shape.detail.unwrap().nullable(),
  request: z.string().nullable(),
});
export type ShownEntry = z.output<typeof shownEntry>;

export const entryList = z.strictObject({
  object: z.literal("list"),
  data: z.array(shownEntry).describe("The latest, the oldest of them first."),
});

const { day: usageDay, model, requests, failed, answered } = usageRow.shape;
export const shownUsage = z.strictObject({
  day: usageDay,
  key: z.string(),
  model: model.describe("Null for requests that named no model that the key may use."),
  requests,
  failed: failed.describe("Of these, how many did not end well."),
  prompt_tokens: usageRow.shape.promptTokens,
  completion_tokens: usageRow.shape.completionTokens,
  answered: answered.describe("Requests that had a first token."),
  first_token_ms: usageRow.shape.firstTokenMs.describe("How long their first tokens were waited for, in all."),
  duration_ms: usageRow.shape.durationMs.describe("How long all requests took together."),
});
export type ShownUsage = z.output<typeof shownUsage>;

export const usageList = z.strictObject({ object: z.literal("list"), data: z.array(shownUsage) });

export const modelsQuery = z.strictObject({ machine: machineName.optional().describe("Only of this machine.") });

const tokens = z.preprocess(
  (text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int().nonnegative().optional().describe("How long its prompt is expected to be, in tokens."),
);

/** The properties of a request for a model that decide which machines can take it. */
export const routeQuery = z.strictObject({
  model: modelId.describe("The model, as clients name it."),
  kind: z.enum(["chat", "complete", "embed"]).default("chat").describe("What it is asked to do."),
  tools: yesOrNo.default(false).describe("Whether the request has tools."),
  vision: yesOrNo.default(false).describe("Whether the request has images."),
  prompt_tokens: tokens,
});

/** The path parameter of one machine. */
export const oneMachine = z.strictObject({ machine: machineName.describe("The name of the machine.") });

export const machineRecordBody = z.strictObject({
  models: modelPatterns.nullable().describe("Patterns of the models it may offer, as in scopes; null for all."),
});

export const machineRecordList = z.strictObject({
  object: z.literal("list"),
  data: z.array(shownMachineRecord).describe("By name. A machine without a record may offer every model."),
});

export const changedMachineRecord = shownMachineRecord.extend({ replicated });

export const removedMachineRecord = z.strictObject({ machine: machineName, state: z.literal("removed") });

/** The path parameters of a machine and of the action that it runs. */
export const manageParams = z.strictObject({
  machine: machineName.describe("The name of the machine."),
  action: z.enum(manageActions).describe("What is to be done with the model there."),
});

export const manageRequest = z.strictObject({
  model: modelId.describe("The model, as its runtime calls it; what is to be pulled is named as its source names it."),
});

export const errorBody = z.strictObject({ error: z.strictObject(errorLine.shape.error.shape) });
