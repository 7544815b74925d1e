import { z } from "zod";
import { auditEntry } from "#shared/keys/audit-entry.ts";
import { duration, durationOrNone, formatDuration, shownKey } from "#shared/keys/shown-key.ts";
import { adminTtlMsMax, defaultTtlMs } from "#shared/keys/issue-key.ts";
import { boundMachines, keyLimits, keyName, keyStates, scopes } from "#shared/keys/key-record.ts";
import { keyId, keyKinds } from "#shared/keys/key-token.ts";
import { defaultGraceMs } from "#shared/keys/change-key.ts";
import { defaultCordonReason } from "#shared/machines/change-machine.ts";
import { joinTtlMsMax } from "#shared/machines/join-machine.ts";
import { cordonReason, machineLabels, modelPatterns } from "#shared/machines/machine-record.ts";
import { shownMachineRecord } from "#shared/machines/shown-machine.ts";
import { errorLine, modelId } from "#shared/model/model.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { manageActions } from "#shared/protocol/job-bodies.ts";
import { routeName, routeTargets, shownModelRoute } from "#shared/routes/route-record.ts";
import { usageRow } from "#shared/usage/usage.ts";

const perPageMax = 1_000;
const perPageDefault = 100;

/** The length of a page, as a number in a URL. */
const pageLength = z.preprocess(
  (text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int().min(1).max(perPageMax).default(perPageDefault).describe("The most entries of a page."),
);
const yesOrNo = z.stringbool({ truthy: ["true"], falsy: ["false"] });
const day = z.iso.date("must be a day, such as 2026-01-31");
const ttl = duration.prefault(formatDuration(defaultTtlMs));

/** For a new key, null means the same as a missing field. In a change, null removes the limit. */
const limits = {
  machines: boundMachines.nullish().describe("The machines that the key is bound to; null for all."),
  elsewhere: z
    .boolean()
    .optional()
    .describe("True if routes may lead it to machines that are elsewhere, such as a cloud. No scope covers them."),
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
    name: keyName.describe("The name of the key in lists."),
    scopes: scopes.default(["*"]).describe("The models it may call: ids, names or patterns with *."),
    ttl: ttl.describe(
      "Time for which it is valid from now on. An admin key ends no later than the one that issues it.",
    ),
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
    .describe("The longest time for which old secrets stay good; 0s when one has leaked."),
  kind: z
    .enum(keyKinds)
    .optional()
    .describe("The kind that the key must have; by default model, and for the key of the request its own."),
});

export const extendBody = z.strictObject({ ttl: ttl.describe("Time for which it is valid from now on.") });

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
  has_more: z.boolean().describe("True if there is a next page, after the last of these."),
});

export const revokeQuery = z.strictObject({
  with_issued: yesOrNo
    .default(false)
    .describe("True if the model keys that an admin key issued, itself or through others, are to be revoked too."),
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
  key: keyId.nullable().describe("The key that it was done to; null where it was none."),
  machine: machineName.nullable().describe("The machine whose record it was done to; null where it was none."),
  route: routeName.nullable().describe("The route that it was done to; null where it was none."),
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
  first_token_ms: usageRow.shape.firstTokenMs.describe("The waits for their first tokens, added up."),
  duration_ms: usageRow.shape.durationMs.describe("The durations of all requests, added up."),
});
export type ShownUsage = z.output<typeof shownUsage>;

export const usageList = z.strictObject({ object: z.literal("list"), data: z.array(shownUsage) });

export const modelsQuery = z.strictObject({ machine: machineName.optional().describe("Only of this machine.") });

const tokens = z.preprocess(
  (text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int().nonnegative().optional().describe("The expected length of its prompt, in tokens."),
);

/** The properties of a request for a model that decide which machines can take it. */
export const routeQuery = z.strictObject({
  model: modelId.describe("The model, as clients name it."),
  kind: z.enum(["chat", "complete", "embed"]).default("chat").describe("The kind of the request."),
  tools: yesOrNo.default(false).describe("True if the request has tools."),
  vision: yesOrNo.default(false).describe("True if the request has images."),
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

/** The body of a request for a join line. */
export const pairBody = z.strictObject({
  models: modelPatterns
    .optional()
    .describe("Patterns of the models it may offer; left out, those of its record, or all."),
  elsewhere: z
    .literal(true)
    .optional()
    .describe("True if its models run elsewhere, so that only routes that say so lead there."),
  ttl: duration
    .prefault(formatDuration(joinTtlMsMax))
    .refine((ms) => ms <= joinTtlMsMax, `must be at most ${formatDuration(joinTtlMsMax)}`)
    .describe("Time for which the join line is good."),
});

/** A join line. It is shown once, to the client that made it. */
export const madeJoin = z.strictObject({
  name: machineName,
  join: z.string().describe("The join line: good once, and a secret until it was used."),
  command: z.string().describe("The command to paste on the machine."),
  expires_at: z.iso.datetime(),
});

export const renameBody = z.strictObject({ name: machineName.describe("Its new name.") });

export const cordonBody = z.strictObject({
  reason: cordonReason.default(defaultCordonReason).describe("Why, as the fleet view shows it."),
});

export const labelsBody = z.strictObject({
  labels: machineLabels.describe("Its labels, by which routes name it, in place of those before."),
});

export const elsewhereBody = z.strictObject({
  elsewhere: z.boolean().describe("True if its models run elsewhere, so that only routes that say so lead there."),
});

/** The site as machines have to know it. */
export const shownSite = z.strictObject({
  site: z.string().describe("The id of the site, which machines sign."),
  public_url: z.string().nullable().describe("The URL by which machines reach the site; null when none was set."),
  certificate_sha256: z
    .string()
    .nullable()
    .describe("SHA-256 of the site's certificate in base64url; null when a public authority signed it."),
});

export const removedMachineRecord = z.strictObject({ machine: machineName, state: z.literal("removed") });

/** The path parameter of one route. */
export const oneRoute = z.strictObject({
  route: routeName.describe("The name of the route, percent-encoded: a name that clients ask for, or a pattern."),
});

export const routeBody = z.strictObject({
  targets: routeTargets.describe("The models that answer for the name, in the order in which they are tried."),
});

export const modelRouteList = z.strictObject({
  object: z.literal("list"),
  data: z.array(shownModelRoute).describe("By name."),
});

export const changedModelRoute = shownModelRoute.extend({ replicated });

export const removedModelRoute = z.strictObject({ route: routeName, state: z.literal("removed"), replicated });

/** The path parameters of a machine and of the action that it runs. */
export const manageParams = z.strictObject({
  machine: machineName.describe("The name of the machine."),
  action: z.enum(manageActions).describe("The action on the model."),
});

export const manageRequest = z.strictObject({
  model: modelId.describe("The model, as its runtime calls it; what is to be pulled is named as its source names it."),
});

export const errorBody = z.strictObject({ error: z.strictObject(errorLine.shape.error.shape) });
