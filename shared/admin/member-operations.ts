import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { type KeyId, keyId } from "../keys/key-token.ts";
import { teamName } from "../protocol/identifiers.ts";
import { type LoginWish, loginWish } from "../protocol/login.ts";
import { type DetailedModel, model } from "../protocol/model.ts";
import { changeKey, rotateKey } from "../records/change-key.ts";
import { issueInTeam } from "../records/change-team.ts";
import { boundMachines, keyName, type KeyLimits, type KeyRecord, keyState, scopes } from "../records/key-record.ts";
import { amountOf, termsWithin } from "../records/own-key.ts";
import { type PersonRecord, showPerson, shownPerson } from "../records/person-record.ts";
import { givenLimits } from "../records/book-limits.ts";
import { duration, durationOrNone, showKey, shownKey } from "../records/shown-key.ts";
import { showTeam, shownTeam, type TeamRecord } from "../records/team-record.ts";
import { showRequest, shownRequest } from "../requests/shown-request.ts";
import { daysAsked } from "../usage/days-asked.ts";
import type { UsageRow } from "../usage/usage.ts";
import { type AdminSite, listOf, operationOn, pageLength, reads, requestCursor } from "./operation.ts";
import { recordOperations, showUsage, usageDays } from "./record-operations.ts";
import { searchWithinMs } from "./request-operations.ts";

/** The person of a request at the public port, with the teams that they are in. */
export interface PersonInTeams {
  readonly person: PersonRecord;
  readonly teams: readonly TeamRecord[];
}

/** The site as a member reaches it. */
export interface MemberSite extends Pick<
  AdminSite,
  "keys" | "teams" | "peppers" | "usage" | "requests" | "clock" | "actor"
> {
  readonly member: PersonInTeams;
  /** Returns the models that keys of a team may call now. */
  readonly modelsOf: (team: TeamRecord) => Promise<readonly DetailedModel[]>;
  /** Allows a login to get a key of the member, and returns where the browser goes. */
  readonly allowLogin: (wish: LoginWish) => Promise<string>;
  /** The address from which the member asks. */
  readonly address: string;
  readonly baseUrl: string;
  readonly version: string;
  readonly currency: string;
}

const used = z.strictObject({
  unit: z.enum(["tokens", "money"]).describe("Money is in millionths."),
  per: z.enum(["day", "month"]).describe("The calendar day or month (UTC)."),
  used: z.int().nonnegative(),
  whole: z.int().positive(),
});
/** A used part of a budget. */
export type Used = z.output<typeof used>;

const budgets = z.array(used).describe("Its budgets, and what is used of them.");
const ownTeam = shownTeam.omit({ members: true, invited: true, claims: true }).extend({
  budgets,
  keys: z.int().nonnegative().describe("The valid keys that the member has in it."),
});
const ownKey = shownKey.extend({ budgets, last_day: z.string().nullable().describe("The latest day of use.") });
const madeKey = shownKey.extend({ key: z.string().describe("The key itself. It cannot be shown again.") });
const ownRequest = shownRequest.omit({ tried: true, tried_before: true, refused_before: true, advice: true });
export type OwnRequest = z.output<typeof ownRequest>;

const ofOneKey = { ...reads, params: z.strictObject({ id: keyId }), refusals: ["key_not_found"] } as const;
const ofMember = operationOn<MemberSite>();

/** All operations of members. Each reads and changes the member's own things alone. */
export const memberOperations = {
  showSelf: ofMember({
    ...reads,
    path: "/me",
    summary: "The member, their teams, what these allow, and what is left of their budgets",
    answer: shownPerson.pick({ person: true, name: true, email: true }).extend({
      budgets,
      teams: z.array(ownTeam),
      address: z.string().describe("The address from which this request came."),
      base_url: z.string(),
      version: z.string(),
      currency: z.string(),
    }),
    async run(_, site) {
      const { person, teams } = site.member;
      const [{ name, email }, rows, own] = [showPerson(person, []), await recentRows(site), await ownKeys(site)];
      const data = teams.map((team) => {
        const { members: _members, invited: _invited, claims: _claims, ...shown } = showTeam(team);
        const ofTeam = rows.filter((row) => row.team === team.name);
        return { ...shown, budgets: usedOf(team.limits, ofTeam, site), keys: validIn(team, own, site).length };
      });
      const ofPerson = rows.filter((row) => row.person === person.name);
      const { baseUrl: base_url, version, currency, address } = site;
      const left = usedOf(person.limits, ofPerson, site);
      return { person: person.name, name, email, budgets: left, teams: data, address, base_url, version, currency };
    },
  }),
  listOwnKeys: ofMember({
    ...reads,
    path: "/keys",
    summary: "The member's own keys without their secrets, the latest first",
    answer: listOf(z.array(ownKey)),
    async run(_, site) {
      const [rows, own] = [await recentRows(site), await ownKeys(site)];
      const data = own.toReversed().map((record) => {
        const ofKey = rows.filter((row) => row.keyId === record.id);
        const shown = showKey(record, site.clock.wall());
        return { ...shown, budgets: usedOf(record.limits, ofKey, site), last_day: ofKey.at(-1)?.day ?? null };
      });
      return { object: "list" as const, data };
    },
  }),
  makeOwnKey: ofMember({
    ...reads,
    method: "POST",
    path: "/keys",
    summary: "Make a key within what a team allows, and show it this once",
    body: z.strictObject({
      name: keyName,
      team: teamName.optional().describe("One of the member's teams; may be left out by a member of one team."),
      ttl: duration.optional(),
      scopes: scopes.optional(),
      machines: boundMachines.nullish(),
      ...givenLimits,
    }),
    answer: madeKey,
    status: 201,
    refusals: ["key_change_refused"],
    async run({ body: { name, team: wanted, ...wish } }, site) {
      const team = teamOf(site.member, wanted);
      const terms = termsWithin(team, wish);
      if (validIn(team, await ownKeys(site), site).length >= team.own.keys) throw tooMany(team);
      const whose = { team: team.name, person: site.member.person.name };
      const { token, record } = await issueInTeam({ name, ...whose, ...terms }, site);
      // Of several that were made at once, each that sees too many is taken back. Clocks do not tell which was stored first.
      if (validIn(team, await ownKeys(site), site).length > team.own.keys) {
        await changeKey(record.id, { action: "revoked" }, site);
        throw tooMany(team);
      }
      return { ...showKey(record, site.clock.wall()), key: token.reveal() };
    },
  }),
  allowLogin: ofMember({
    ...reads,
    method: "POST",
    path: "/logins",
    summary: "Allow a `trunkline login` on the computer of this browser to get a key",
    body: loginWish,
    answer: z.strictObject({ url: z.string().describe("Where the browser goes: a port of its own computer.") }),
    async run({ body }, { member, allowLogin }) {
      teamOf(member, body.team);
      return { url: await allowLogin(body) };
    },
  }),
  rotateOwnKey: ofMember({
    ...ofOneKey,
    method: "POST",
    path: "/keys/{id}/rotate",
    summary: "Give an own key another secret, and show it this once",
    body: z.strictObject({ grace: durationOrNone.prefault("24h") }),
    answer: madeKey,
    refusals: ["key_not_found", "key_change_refused"],
    async run({ params: { id }, body: { grace: graceMs } }, site) {
      await assertOwn(id, site);
      const { changed, token } = await rotateKey({ id, graceMs, kind: "model" }, site);
      if (!("record" in changed) || token === undefined)
        throw refusal(`The key ${id} ${"reason" in changed ? changed.reason : "is gone"}.`);
      return { ...showKey(changed.record, site.clock.wall()), key: token.reveal() };
    },
  }),
  revokeOwnKey: ofMember({
    ...ofOneKey,
    method: "POST",
    path: "/keys/{id}/revoke",
    summary: "Revoke an own key for good",
    answer: z.strictObject({ id: keyId, state: z.literal("revoked") }),
    async run({ params: { id } }, site) {
      await assertOwn(id, site);
      await changeKey(id, { action: "revoked" }, site);
      return { id, state: "revoked" as const };
    },
  }),
  readOwnUsage: ofMember({
    ...reads,
    path: "/usage",
    summary: "The member's own usage, by day, key and model",
    query: recordOperations.readUsage.query.pick({ from: true, to: true }),
    answer: recordOperations.readUsage.answer.pick({ object: true, data: true }),
    async run({ query }, site) {
      const { rows } = await site.usage.read(usageDays(query, site.clock.wall()));
      const data = rows.filter(({ person }) => person === site.member.person.name).map(showUsage);
      return { object: "list" as const, data };
    },
  }),
  listOwnRequests: ofMember({
    ...reads,
    path: "/requests",
    summary: "Requests of the member's own keys that ended, the latest first",
    query: z.strictObject({ before: z.string().regex(requestCursor).optional(), limit: pageLength }),
    answer: listOf(z.array(ownRequest)).extend({ next: z.string().nullable() }),
    async run({ query: { before, limit } }, site) {
      const keyIds = (await ownKeys(site)).map(({ id }) => id);
      const terms = { limit, before, withinMs: searchWithinMs };
      const { found, next = null } = await site.requests.find({ keyIds }, terms);
      return { object: "list" as const, data: found.map(({ record }) => showOwn(record)), next };
    },
  }),
  showOwnRequest: ofMember({
    ...reads,
    path: "/requests/{id}",
    summary: "One request of the member's own keys",
    params: z.strictObject({ id: z.string().max(100) }),
    answer: ownRequest,
    refusals: ["request_not_found"],
    async run({ params: { id } }, site) {
      const record = await site.requests.get(id);
      const own = await ownKeys(site);
      if (record !== undefined && own.some((key) => key.id === record.keyId)) return showOwn(record);
      const message = `There is no request ${id} of your keys, or its record was dropped.`;
      throw new Fault("request_not_found", { message, param: "id" });
    },
  }),
  listOwnModels: ofMember({
    ...reads,
    path: "/models",
    summary: "The models that keys of the member's teams may call now",
    answer: listOf(
      z.array(model.pick({ id: true, context_window: true, capabilities: true }).extend({ teams: z.array(teamName) })),
    ),
    async run(_, { member: { teams }, modelsOf }) {
      const found = await Promise.all(
        teams.map(async (team) => (await modelsOf(team)).map((each) => ({ ...each, team: team.name }))),
      );
      const data = [...Map.groupBy(found.flat(), ({ id }) => id)].flatMap(([id, of]) =>
        of.slice(0, 1).map(({ context_window, capabilities }) => ({
          id,
          context_window,
          capabilities,
          teams: of.map(({ team }) => team),
        })),
      );
      return { object: "list" as const, data };
    },
  }),
};
export type MemberOperations = typeof memberOperations;

/** Returns all keys for models of the member, the oldest first. */
async function ownKeys({ keys, member: { person } }: MemberSite): Promise<readonly KeyRecord[]> {
  const own = (await keys.list()).filter((each) => each.kind === "model" && each.person === person.name);
  return own.toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
}

function validIn(team: TeamRecord, own: readonly KeyRecord[], { clock }: MemberSite): readonly KeyRecord[] {
  const isThere = (each: KeyRecord) => ["valid", "disabled"].includes(keyState(each, clock.wall()));
  return own.filter((each) => each.team === team.name && isThere(each));
}

/** Refuses the key of somebody else as one that is not there. */
async function assertOwn(id: KeyId, site: MemberSite): Promise<void> {
  if ((await ownKeys(site)).some((each) => each.id === id)) return;
  throw new Fault("key_not_found", { message: `You have no key ${id}.`, param: "id" });
}

function teamOf({ teams }: PersonInTeams, wanted: string | undefined): TeamRecord {
  const team = wanted === undefined && teams.length === 1 ? teams[0] : teams.find(({ name }) => name === wanted);
  if (team !== undefined) return team;
  const named = teams.map(({ name }) => name).join(", ");
  const message =
    named === ""
      ? "You are in no team yet, and keys belong to one. Ask the operator of this site."
      : `Invalid value for 'team': it must be one of your teams: ${named}.`;
  throw new Fault("invalid_value", { message, param: "team" });
}

function tooMany({ name, own }: TeamRecord): Fault {
  return refusal(`A member of the team ${name} may have ${own.keys} keys at once. Revoke one first.`);
}

function refusal(message: string): Fault {
  return new Fault("key_change_refused", { message });
}

function showOwn(record: Parameters<typeof showRequest>[0]): OwnRequest {
  return ownRequest.strip().parse(showRequest(record));
}

/** Returns the rows of usage that count for budgets now, and those of the days before by which a last use is known. */
async function recentRows({ usage, clock }: MemberSite): Promise<readonly UsageRow[]> {
  return (await usage.read(daysAsked({ days: 31 }, clock.wall()))).rows;
}

function usedOf({ budget, spend }: KeyLimits = {}, rows: readonly UsageRow[], { clock }: MemberSite): Used[] {
  const today = new Date(clock.wall()).toISOString().slice(0, 10);
  const tokens = (row: UsageRow) => row.promptTokens + row.completionTokens;
  const limits = [["tokens", budget, tokens] as const, ["money", spend, ({ cost }: UsageRow) => cost] as const];
  return limits.flatMap(([unit, limit, amount]) => {
    if (limit === undefined) return [];
    const counted = rows.filter(({ day }) => day.startsWith(limit.per === "day" ? today : today.slice(0, 7)));
    const sum = counted.reduce((all, row) => all + amount(row), 0);
    return [{ unit, per: limit.per, used: sum, whole: amountOf(limit) }];
  });
}
