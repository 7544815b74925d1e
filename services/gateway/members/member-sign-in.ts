import type { FastifyInstance } from "fastify";
import type { PersonInTeams } from "#shared/admin/member-operations.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { findMemberSession, holderOf, makeMemberSession, sessionMs } from "#shared/records/session-record.ts";
import { isExpected, signedIn } from "#shared/records/change-person.ts";
import { type PersonStore, printOf } from "#shared/records/person-record.ts";
import { olderGateway } from "#shared/records/site-gateways.ts";
import type { TeamStore } from "#shared/records/team-record.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import type { Exchange } from "../http/request-state.ts";
import type { OpenId, Proved } from "../operations/open-id.ts";
import { assertOwnPage, cookieIn } from "../operations/operations-access.ts";
import { openIdRoutes, setCookie } from "../operations/sign-in.ts";
import { memberBy, memberCookie, type MemberProof } from "./member-access.ts";

export interface MemberSignIn extends MemberProof {
  readonly openId: OpenId;
  readonly publicUrl: string;
  readonly keys: KeyStore;
  readonly people: PersonStore;
  readonly teams: TeamStore;
  readonly log: Pick<Log, "info">;
}

const url = "/console/session";

/** Mounts the session of a member: OpenID alone opens one, and DELETE ends it, or with `?everywhere` all of the person. */
export function memberSessionRoutes(scope: FastifyInstance, parts: MemberSignIn): void {
  const { openId, publicUrl, sessions } = parts;
  openIdRoutes(scope, {
    ...parts,
    cookie: "__Host-trunkline_member_openid",
    isSecure: () => true,
    page: () => `${publicUrl}/console`,
    enter: (proved, exchange) => enter(proved, exchange, parts),
  });
  void scope.register(async (own) => {
    own.addHook("onRequest", async (request, reply) => {
      void reply.header("cache-control", "no-store");
      assertOwnPage(request);
    });
    own.get(url, async () => ({ openid: openId.host }));
    own.delete(url, async (request, reply) => {
      const session = await findMemberSession(cookieIn(request, memberCookie) ?? "", parts);
      const everywhere = session !== undefined && "everywhere" in (request.query as object);
      const others = everywhere ? (await sessions.list()).filter((each) => holderOf(each) === session.person) : [];
      const ids = session === undefined ? [] : [...others.map(({ id }) => id), session.id];
      for (const id of ids) await sessions.remove(id);
      setCookie(reply, { name: memberCookie, text: "", maxAgeMs: 0, isSecure: true });
      return reply.send({ ended: ids.length });
    });
  });
  refuseOtherMethods(scope, url, ["GET", "HEAD", "DELETE"]);
}

/** Opens the session of a person with a role or a team. It is a member's, whatever more the claims say. */
async function enter(proved: Proved, { request, reply }: Exchange, parts: MemberSignIn): Promise<string | undefined> {
  const { openId, sessions } = parts;
  const person = openId.personOf(proved);
  const hasRole = openId.roleOf(proved) !== undefined;
  const older = olderGateway("member", await parts.keys.gateways());
  // The page shows the name of the gateway, which is a host's.
  if (older !== undefined) return `older.${older.name.replaceAll(/[^\w.-]/g, "")}`;
  const by = { by: `person ${printOf(proved.digest)}`, request: request.id };
  const isLetIn = hasRole || (await isExpected(person, parts));
  const known = isLetIn ? await signedIn(person, { ...parts, actor: by }) : undefined;
  const member = known && (await memberBy(known.name, parts));
  if (member === undefined || (!hasRole && member.teams.length === 0)) {
    openId.warnOfNoRole(proved);
    return "no_role";
  }
  const { name: id } = member.person;
  const { "user-agent": agent } = request.headers;
  const { token, record } = await makeMemberSession({ person: id, address: request.ip, agent }, parts);
  await sessions.noteSignIn({
    at: record.createdAt,
    by: actorOf(member, record.id),
    action: "signed_in",
    name: printOf(id),
    detail: { role: "member", address: request.ip, user_agent: record.agent },
    request: request.id,
  });
  parts.log.info({ person: printOf(id), session: record.id, address: request.ip }, "a member signed in");
  setCookie(reply, { name: memberCookie, text: token.text, maxAgeMs: sessionMs, isSecure: true });
  return undefined;
}

/** Returns the name of a member in the trail: the beginning of their id, so that a forgotten name is not kept there. */
export function actorOf({ person }: PersonInTeams, session: string): string {
  return `person ${printOf(person.name)}, session ${session}`;
}
