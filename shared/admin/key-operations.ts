import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { type KeyId, keyId, type KeyKind, keyKinds } from "../keys/key-token.ts";
import {
  changeKey,
  defaultGraceMs,
  type KeyChange,
  type KeyChanged,
  replicatedIn,
  revokeKey,
  rotateKey,
} from "../records/change-key.ts";
import { issueInTeam } from "../records/change-team.ts";
import { defaultTtlMs } from "../records/issue-key.ts";
import {
  keyName,
  type KeyRecord,
  type KeyState,
  keyState,
  keyStates,
  scopes,
  storedTerms,
  termSchema,
} from "../records/key-record.ts";
import type { UnreadRecord } from "../records/key-store.ts";
import { formatDuration } from "../process/quantities.ts";
import { findRecord } from "../records/change-record.ts";
import { teamForm } from "../records/team-record.ts";
import { teamName } from "../protocol/identifiers.ts";
import { duration, durationOrNone, showKey, shownKey, wordsOf } from "../records/shown-key.ts";
import { type GivenTerms, type TermName, termRows } from "./key-terms.ts";
import { onStore, outcome, pageLength, reads, recordsOf, replicated, type AdminSite, yesOrNo } from "./operation.ts";

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
  team: teamName.optional().describe("The team whose terms hold for it too."),
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

const changedKey = shownKey.extend({ outcome, replicated });
/** A key with its secret. The secret is shown once, to the client that made it. */
const issuedKey = shownKey.extend({
  replicated,
  key: z.string().describe("The key itself. It cannot be shown again."),
});
const keyList = recordsOf(z.array(shownKey)).extend({
  has_more: z.boolean().describe("True if there is a next page, after the last of these."),
});
const revokedKey = z.strictObject({
  id: keyId,
  state: z.literal("revoked"),
  outcome,
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

const revokesOneKey = {
  ...readsOneKey,
  forAdmins: true,
  summary: "Revoke a key for good; with an admin key also the admin and viewer keys that it issued, recursively",
  query: z.strictObject({
    with_issued: yesOrNo
      .default(false)
      .describe("True if the model keys that an admin key issued, itself or through others, are to be revoked too."),
  }),
  answer: revokedKey,
} as const;

export const keyOperations = {
  listKeys: onStore({
    ...reads,
    path: "/keys",
    summary: "List keys without their secrets, the oldest first; those that expired for another 90 days",
    query: z.strictObject({
      state: z.enum(keyStates).optional().describe("Only keys in this state."),
      team: teamName.optional().describe("Only keys of this team."),
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
  issueKey: onStore({
    ...reads,
    method: "POST",
    forAdmins: true,
    path: "/keys",
    summary: "Make a key, and show it this once",
    body: issueBody,
    answer: issuedKey,
    status: 201,
    refusals: ["key_change_refused", "team_not_found"],
    example: {
      name: "alice",
      scopes: ["llama3.2", "qwen*"],
      ttl: "90d",
      rpm: 60,
      budget: { tokens: 1e6, per: "month" },
    },
    async run({ body: { kind, name, scopes: granted, ttl: ttlMs, team, ...given } }, site) {
      if (team !== undefined) await assertTeam(team, kind, site);
      const wish = { kind, name, scopes: granted, ttlMs, team, ...storedTerms(given) };
      const { token, record } = await issueInTeam(wish, site);
      return { ...showKey(record, site.clock.wall()), key: token.reveal() };
    },
  }),
  showKey: onStore({
    ...readsOneKey,
    path: "/keys/{id}",
    summary: "Show a key without its secret",
    answer: shownKey,
    async run({ params: { id } }, site) {
      const found = await site.keys.find(id);
      if (found.kind === "record") return showKey(found.record, site.clock.wall());
      throw found.kind === "absent" ? keyNotFound(id, site) : keyLapsed(id);
    },
  }),
  changeKey: onStore({
    ...changesOneKey,
    method: "PATCH",
    path: "/keys/{id}",
    summary: "Change the terms of a key that are named; null takes one away",
    body: changeBody,
    example: { name: "alice's laptop", machines: ["attic"], rpm: 120, budget: null },
    run: async ({ params: { id }, body: { name, scopes: granted, ...given } }, site) =>
      change(id, { action: "changed", terms: { name, scopes: granted, ...storedTerms(given) } }, site),
  }),
  deleteKey: onStore({ ...revokesOneKey, method: "DELETE", path: "/keys/{id}", run: revoke }),
  revokeKey: onStore({ ...revokesOneKey, method: "POST", path: "/keys/{id}/revoke", run: revoke }),
  rotateKey: onStore({
    ...changesOneKey,
    path: "/keys/{id}/rotate",
    summary: "Give a key another secret, and show it this once; the one before stays good for the grace",
    body: rotateBody,
    answer: issuedKey,
    example: { grace: "24h" },
    async run({ params: { id }, body: { grace: graceMs, kind } }, site) {
      const { admin, clock } = site;
      const wanted = kind ?? (id === admin?.id ? admin.kind : "model");
      const { changed, token } = await rotateKey({ id, graceMs, kind: wanted }, site);
      const record = changedRecord(id, changed, site);
      if (token === undefined) throw new Error("a key was rotated without a new secret");
      return { ...showKey(record, clock.wall()), ...replicatedIn(changed), key: token.reveal() };
    },
  }),
  extendKey: onStore({
    ...changesOneKey,
    path: "/keys/{id}/extend",
    summary: "Make a key valid for longer, from now on",
    body: z.strictObject({ ttl: ttl.describe("Time for which it is valid from now on.") }),
    example: { ttl: "90d" },
    run: ({ params: { id }, body }, site) => change(id, { action: "extended", ttlMs: body.ttl }, site),
  }),
  disableKey: onStore({
    ...changesOneKey,
    path: "/keys/{id}/disable",
    summary: "Refuse a key until it is enabled again, and end its requests",
    run: ({ params: { id } }, site) => change(id, { action: "disabled" }, site),
  }),
  enableKey: onStore({
    ...changesOneKey,
    path: "/keys/{id}/enable",
    summary: "Accept a key again that was disabled",
    run: ({ params: { id } }, site) => change(id, { action: "enabled" }, site),
  }),
};

/** Refuses a key of an unknown team. Keys that call no models have none. */
async function assertTeam(team: string, kind: KeyKind, site: AdminSite): Promise<void> {
  await findRecord(teamForm, team, site);
  if (kind === "model") return;
  const message = `Invalid value for 'team': a key of kind ${kind} calls no models, and is of no team.`;
  throw new Fault("invalid_value", { message, param: "team" });
}

async function revoke(
  { params: { id }, query }: { readonly params: { id: KeyId }; readonly query: { with_issued: boolean } },
  site: AdminSite,
) {
  const { changed, revoked, stay } = await revokeKey({ id, withIssued: query.with_issued }, site);
  if (changed.outcome !== "forgotten") changedRecord(id, changed, site);
  return {
    id,
    state: "revoked" as const,
    ...outcomeOf(changed),
    ...(revoked.length === 0 ? {} : { revoked_with_it: revoked.map((each) => each.id) }),
    ...(stay.length === 0 ? {} : { issued_and_stay: stay.map((each) => each.id) }),
  };
}

async function change(id: KeyId, wish: KeyChange, site: AdminSite) {
  const changed = await changeKey(id, wish, site);
  return { ...showKey(changedRecord(id, changed, site), site.clock.wall()), ...outcomeOf(changed) };
}

function outcomeOf(changed: KeyChanged) {
  const after = changed.outcome === "unchanged" ? "unchanged" : "changed";
  return { outcome: after, ...replicatedIn(changed) } as const;
}

/** Returns the record after a change. Throws the fault of a change that was refused, or of a key that is unknown. */
function changedRecord(id: KeyId, changed: KeyChanged, site: AdminSite): KeyRecord {
  if (changed.outcome === "refused")
    throw new Fault("key_change_refused", { message: `The key ${id} ${changed.reason}.` });
  if (!("record" in changed)) throw keyNotFound(id, site);
  return changed.record;
}

function keyLapsed(id: KeyId): Fault {
  const message = `The key ${id} expired so long ago that nothing else is known of it.`;
  return new Fault("key_not_found", { message, param: "id" });
}

function keyNotFound(id: KeyId, { place }: AdminSite): Fault {
  const where = place === undefined ? "" : ` in ${place}`;
  const message = `There is no key ${id}${where}: \`trunkline keys list\` shows all.`;
  return new Fault("key_not_found", { message, param: "id" });
}

interface PageQuery {
  readonly state?: KeyState | undefined;
  readonly team?: string | undefined;
  readonly limit: number;
  /** The last key of the page before, whatever its state is now. */
  readonly after?: KeyId | undefined;
}

/** Returns the next page of keys, in order of creation. Keys created at the same time are ordered by id. */
export function pageOfKeys(
  records: readonly KeyRecord[],
  { state, team, limit, after }: PageQuery,
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
  const rest = ordered
    .slice(last + 1)
    .filter(
      (record) =>
        (state ?? keyState(record, nowMs)) === keyState(record, nowMs) && (team ?? record.team) === record.team,
    );
  return { page: rest.slice(0, limit), hasMore: rest.length > limit };
}
