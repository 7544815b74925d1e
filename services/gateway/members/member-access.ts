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
  if (person === undefined || person.disabledAt !== undefined) return undefined;
  return { person, teams: (await teams.list()).filter((team) => isMember(person, team)) };
}

/** The member of a request, and their session. */
export interface SignedInMember extends PersonInTeams {
  readonly session: MemberSession;
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

/** Lets only requests with a member's session into a scope of routes, before their bodies are read. */
export function proveMembers(scope: FastifyInstance, proof: MemberProof): void {
  const rates = new RateBuckets(proof.clock, perMinute(memberRequestsPerMinuteMax));
  scope.addHook("onRequest", async (request) => {
    assertOwnPage(request);
    const text = cookieIn(request, memberCookie);
    if (text === undefined) throw signInFirst("Nobody is signed in here. Sign in first.");
    const member = await proof.badKeys.askOrThrow(request.ip, async () => {
      const session = await asStore(() => findMemberSession(text, proof));
      const found = session && (await asStore(() => memberBy(session.person, proof)));
      if (session === undefined || found === undefined || session.createdAt < beginOf(found.person))
        throw signInFirst("This session has ended. Sign in again.");
      return { ...found, session };
    });
    if (rates.waitMs(member.person.name) > 0) {
      const message = `A member may send ${memberRequestsPerMinuteMax} requests a minute here (memberRequestsPerMinuteMax). Try again in a moment.`;
      throw new Fault("rate_limit_requests", { message });
    }
    rates.add(member.person.name);
    members.set(request, member);
  });
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
