import { z } from "zod";
import { type GivenTerms, type TermName, termRows } from "#shared/admin/key-terms.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import { Fault } from "#shared/fault/fault.ts";
import {
  changeKey,
  defaultGraceMs,
  type KeyChange,
  type KeyChanged,
  recordAfter,
  replicatedIn,
  revokeKey,
  rotateKey,
} from "#shared/records/change-key.ts";
import { defaultTtlMs, issueKey } from "#shared/records/issue-key.ts";
import {
  keyName,
  type KeyRecord,
  type KeyState,
  keyState,
  keyStates,
  scopes,
  storedTerms,
  termSchema,
} from "#shared/records/key-record.ts";
import { type KeyId, keyId, keyKinds } from "#shared/keys/key-token.ts";
import { duration, durationOrNone, formatDuration, showKey, shownKey, wordsOf } from "#shared/records/shown-key.ts";
import type { Asker } from "./operations-access.ts";
import {
  type AdminOperation,
  type AdminParts,
  recordsOf,
  defineOperation,
  pageLength,
  reads,
  replicated,
  yesOrNo,
} from "./serve-operation.ts";

const ttl = duration.prefault(formatDuration(defaultTtlMs));

/** For a new key, null means the same as a missing field. In a change, null removes the term. */
const terms = Object.fromEntries<z.ZodType>(
  termRows.map(([name, row]) => {
    const schema = row.kind === "mark" ? z.boolean().optional() : termSchema(row).nullish();
    return [name, schema.describe(wordsOf(row))];
  }),
) as { readonly [Name in TermName]: z.ZodOptional<z.ZodType<Exclude<GivenTerms[Name], undefined>>> };

const issueBody = z.strictObject({
  kind: z
    .enum(keyKinds)
    .default("model")
    .describe("Keys of kind admin use the admin API, keys of kind viewer only read there; neither calls models."),
  name: keyName.describe("The name of the key in lists."),
  scopes: scopes.default(["*"]).describe("The models it may call: ids, names or patterns with *."),
  ttl: ttl.describe("Time for which it is valid from now on. An admin key ends no later than the one that issues it."),
  ...terms,
});

const changeBody = z.strictObject({ name: keyName.optional(), scopes: scopes.optional(), ...terms });

const rotateBody = z.strictObject({
  grace: durationOrNone
    .prefault(formatDuration(defaultGraceMs))
    .describe("The longest time for which old secrets stay good; 0s when one has leaked."),
  kind: z
    .enum(keyKinds)
    .optional()
    .describe("The kind that the key must have; by default model, and for the key of the request its own."),
});

const changedKey = shownKey.extend({ replicated });
/** A key with its secret. The secret is shown once, to the client that made it. */
const issuedKey = changedKey.extend({ key: z.string().describe("The key itself. It cannot be shown again.") });
const keyList = recordsOf(z.array(shownKey)).extend({
  has_more: z.boolean().describe("True if there is a next page, after the last of these."),
});
const revokedKey = z.strictObject({
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

/** The answers of these operations that the document of the API names. */
export const keySchemas = {
  Key: shownKey,
  ChangedKey: changedKey,
  IssuedKey: issuedKey,
  KeyList: keyList,
  RevokedKey: revokedKey,
};

const readsOneKey = {
  ...reads,
  params: z.strictObject({ id: keyId.describe("The id of a key: what stands after its prefix.") }),
  refusals: ["key_not_found"],
} as const;
const changesOneKey = {
  ...readsOneKey,
  method: "POST",
  forAdmins: true,
  answer: changedKey,
  refusals: ["key_not_found", "key_change_refused"],
} as const;

export const keyOperations = {
  listKeys: defineOperation({
    ...reads,
    path: "/keys",
    summary: "List keys without their secrets, the oldest first; those that expired for another 90 days",
    query: z.strictObject({
      state: z.enum(keyStates).optional().describe("Only keys in this state."),
      limit: pageLength,
      after: keyId.optional().describe("The id of the last key of the page before."),
    }),
    answer: keyList,
    async run({ query }, { keys, clock }) {
      const nowMs = clock.wall();
      const unread: UnreadRecord[] = [];
      const { page, hasMore } = pageOfKeys(await keys.list(unread), query, nowMs);
      const data = page.map((record) => showKey(record, nowMs));
      return { object: "list" as const, data, has_more: hasMore, unread: unread.length };
    },
  }),
  issueKey: defineOperation({
    ...reads,
    method: "POST",
    forAdmins: true,
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
    async run({ body: { kind, name, scopes: granted, ttl: ttlMs, ...given }, asker }, parts) {
      const wish = { kind, name, scopes: granted, ttlMs, ...storedTerms(given) };
      const { token, record } = await issueKey(wish, dependenciesOf(asker, parts));
      return { ...showKey(record, parts.clock.wall()), key: token.reveal() };
    },
  }),
  showKey: defineOperation({
    ...readsOneKey,
    path: "/keys/{id}",
    summary: "Show a key without its secret",
    answer: shownKey,
    async run({ params }, { keys, clock }) {
      const found = await keys.find(params.id);
      if (found.kind !== "record") throw keyNotFound();
      return showKey(found.record, clock.wall());
    },
  }),
  changeKey: defineOperation({
    ...changesOneKey,
    method: "PATCH",
    path: "/keys/{id}",
    summary: "Change the terms of a key that are named; null takes one away",
    body: changeBody,
    example: { name: "alice's laptop", machines: ["attic"], rpm: 120, budget: null },
    run: ({ params, body: { name, scopes: granted, ...given }, asker }, parts) =>
      change(params.id, { action: "changed", terms: { name, scopes: granted, ...storedTerms(given) } }, asker, parts),
  }),
  deleteKey: defineRevocation("DELETE", "/keys/{id}"),
  revokeKey: defineRevocation("POST", "/keys/{id}/revoke"),
  rotateKey: defineOperation({
    ...changesOneKey,
    path: "/keys/{id}/rotate",
    summary: "Give a key another secret, and show it this once; the one before stays good for the grace",
    body: rotateBody,
    answer: issuedKey,
    example: { grace: "24h" },
    async run({ params: { id }, body, asker }, parts) {
      const dependencies = dependenciesOf(asker, parts);
      const kind = body.kind ?? (id === dependencies.admin.id ? dependencies.admin.kind : "model");
      const { changed, token } = await rotateKey({ id, graceMs: body.grace, kind }, dependencies);
      const shown = showChanged(changed, parts);
      if (token === undefined) throw new Error("a key was rotated without a new secret");
      return { ...shown, key: token.reveal() };
    },
  }),
  extendKey: defineOperation({
    ...changesOneKey,
    path: "/keys/{id}/extend",
    summary: "Make a key valid for longer, from now on",
    body: z.strictObject({ ttl: ttl.describe("Time for which it is valid from now on.") }),
    example: { ttl: "90d" },
    run: ({ params, body, asker }, parts) => change(params.id, { action: "extended", ttlMs: body.ttl }, asker, parts),
  }),
  disableKey: defineOperation({
    ...changesOneKey,
    path: "/keys/{id}/disable",
    summary: "Refuse a key until it is enabled again, and end its requests",
    run: ({ params, asker }, parts) => change(params.id, { action: "disabled" }, asker, parts),
  }),
  enableKey: defineOperation({
    ...changesOneKey,
    path: "/keys/{id}/enable",
    summary: "Accept a key again that was disabled",
    run: ({ params, asker }, parts) => change(params.id, { action: "enabled" }, asker, parts),
  }),
};

function defineRevocation(method: "DELETE" | "POST", path: string): AdminOperation {
  return defineOperation({
    ...readsOneKey,
    method,
    forAdmins: true,
    path,
    summary: "Revoke a key for good; with an admin key also the admin and viewer keys that it issued, recursively",
    query: z.strictObject({
      with_issued: yesOrNo
        .default(false)
        .describe("True if the model keys that an admin key issued, itself or through others, are to be revoked too."),
    }),
    answer: revokedKey,
    async run({ params: { id }, query, asker }, parts) {
      const wish = { id, withIssued: query.with_issued };
      const { changed, revoked, stay } = await revokeKey(wish, dependenciesOf(asker, parts));
      changedRecord(changed);
      return {
        id,
        state: "revoked" as const,
        ...replicatedIn(changed),
        ...(revoked.length === 0 ? {} : { revoked_with_it: revoked.map((each) => each.id) }),
        ...(stay.length === 0 ? {} : { issued_and_stay: stay.map((each) => each.id) }),
      };
    },
  });
}

function dependenciesOf(asker: Asker, { keys, peppers, clock }: AdminParts) {
  return { keys, peppers, clock, ...asker };
}

async function change(id: KeyId, wish: KeyChange, asker: Asker, parts: AdminParts) {
  return showChanged(await changeKey(id, wish, dependenciesOf(asker, parts)), parts);
}

function showChanged(changed: KeyChanged, { clock }: AdminParts) {
  const record = changedRecord(changed);
  if (record === undefined) throw keyNotFound();
  return { ...showKey(record, clock.wall()), ...replicatedIn(changed) };
}

function changedRecord(changed: KeyChanged): KeyRecord | undefined {
  return recordAfter(changed, (refusal) =>
    refusal === undefined ? keyNotFound() : new Fault("key_change_refused", { message: `The key ${refusal}.` }),
  );
}

function keyNotFound(): Fault {
  return new Fault("key_not_found", { message: "There is no key with this id.", param: "id" });
}

interface PageQuery {
  readonly state?: KeyState | undefined;
  readonly limit: number;
  /** The last key of the page before, whatever its state is now. */
  readonly after?: KeyId | undefined;
}

/** Returns the next page of keys, in order of creation. Keys created at the same time are ordered by id. */
export function pageOfKeys(
  records: readonly KeyRecord[],
  { state, limit, after }: PageQuery,
  nowMs: number,
): { readonly page: readonly KeyRecord[]; readonly hasMore: boolean } {
  const ordered = records.toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  const last = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && last === -1) {
    throw new Fault("invalid_value", {
      message: "Invalid value for 'after': this key no longer exists; start with the first page.",
      param: "after",
    });
  }
  const rest = ordered.slice(last + 1).filter((record) => state === undefined || keyState(record, nowMs) === state);
  return { page: rest.slice(0, limit), hasMore: rest.length > limit };
}
