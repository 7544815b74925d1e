import type { FastifyInstance, FastifyRequest } from "fastify";
import type { PersonInTeams } from "#shared/admin/member-operations.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import type { Clock } from "#shared/process/clock.ts";
import { findMemberSession, type MemberSession, type SessionStore } from "#shared/records/session-record.ts";
import type { PersonRecord, PersonStore } from "#shared/records/person-record.ts";
import { isMember, type TeamStore } from "#shared/records/team-record.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import { asStore, assertOwnPage, cookieIn } from "../operations/operations-access.ts";

/** The cookie of a member's session. Browsers take one of such a name only by TLS, for this host alone. */
export const memberCookie = "__Host-trunkline_member";

export interface MemberProof {
  readonly sessions: SessionStore;
  readonly peppers: Peppers;
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall" | "now">;
  readonly people: Pick<PersonStore, "find">;
  readonly teams: Pick<TeamStore, "list">;
}

/** Returns a person and their teams as they are now. Undefined for one who was removed or disabled. */
export async function memberBy(id: string, { people, teams }: MemberProof): Promise<PersonInTeams | undefined> {
  const person = await people.find(id);
  return isThere(person) ? { person, teams: await teamsOf(person, teams) } : undefined;
}

function isThere(person: PersonRecord | undefined): person is PersonRecord {
  return person !== undefined && person.disabledAt === undefined;
}

async function teamsOf(person: PersonRecord, teams: MemberProof["teams"]): Promise<PersonInTeams["teams"]> {
  return (await teams.list()).filter((team) => isMember(person, team));
}

/** The member of a request, and their session. */
export interface SignedInMember extends PersonInTeams {
  readonly session: MemberSession;
  /** Reads the session and its person again. Throws the fault of a session that has ended. */
  readonly again: () => Promise<unknown>;
}

const members = new WeakMap<FastifyRequest, SignedInMember>();

/** Returns the member who sent a request. A route that is reached without one is a bug. */
export function memberOf(request: FastifyRequest): SignedInMember {
  const member = members.get(request);
  if (member === undefined) throw Fault.from(new Error("a route for members was reached without one"));
  return member;
}

/** Requests of one member in a minute at each gateway: some of them read a year of usage. */
export const memberRequestsPerMinuteMax = 300;

/** Proves the member who sent a request by the session of its cookie, and throws where there is none. */
export type ProveMember = (request: FastifyRequest) => Promise<SignedInMember>;

/** Returns the proof of members. The requests of a member count for one rate, wherever it is used. */
export function memberProver(proof: MemberProof): ProveMember {
  const rates = new RateBuckets(proof.clock, perMinute(memberRequestsPerMinuteMax));
  return async (request) => {
    assertOwnPage(request);
    const text = cookieIn(request, memberCookie);
    if (text === undefined) throw signInFirst("Nobody is signed in here. Sign in first.");
    const member = await proof.badKeys.askOrThrow(request.ip, async () => {
      const found = await sessionWith(text, proof);
      const teams = await asStore(() => teamsOf(found.person, proof.teams));
      return { ...found, teams, again: () => sessionWith(text, proof) };
    });
    if (rates.waitMs(member.person.name) > 0) {
      const message = `A member may send ${memberRequestsPerMinuteMax} requests a minute here (memberRequestsPerMinuteMax). Try again in a moment.`;
      throw new Fault("rate_limit_requests", { message });
    }
    rates.add(member.person.name);
    members.set(request, member);
    return member;
  };
}

async function sessionWith(text: string, proof: MemberProof): Promise<Pick<SignedInMember, "session" | "person">> {
  const session = await asStore(() => findMemberSession(text, proof));
  const person = session && (await asStore(() => proof.people.find(session.person)));
  if (session === undefined || !isThere(person) || session.createdAt < beginOf(person))
    throw signInFirst("This session has ended. Sign in again.");
  return { session, person };
}

/** Returns when the sessions of a person could begin: those from before they were disabled or removed stay ended. */
function beginOf({ createdAt, enabledAt = createdAt }: PersonRecord): number {
  return enabledAt;
}

/** Refuses requests by another host's name than that of the public URL: a page of a foreign name reads no answer. */
export function assertPublicName(scope: FastifyInstance, publicUrl: string): void {
  const { hostname } = new URL(publicUrl);
  scope.addHook("onRequest", async ({ headers: { host = "" } }) => {
    if (URL.canParse(`https://${host}`) && new URL(`https://${host}`).hostname === hostname) return;
    const message = `The pages of members are at ${publicUrl}/console alone: the Host header of this request has another name. A proxy in front must pass the header on.`;
    throw new Fault("bad_request", { message });
  });
}

function signInFirst(message: string): Fault {
  return new Fault("key_invalid", { message });
}
