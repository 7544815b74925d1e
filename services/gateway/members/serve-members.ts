import type { FastifyInstance, FastifyRequest } from "fastify";
import packageJson from "../../../package.json" with { type: "json" };
import {
  type MemberOperations,
  memberOperations,
  type MemberSite,
  type PersonInTeams,
} from "#shared/admin/member-operations.ts";
import type { AdminOperation, Input } from "#shared/admin/operation.ts";
import { Fault } from "#shared/fault/fault.ts";
import { printOf } from "#shared/records/person-record.ts";
import type { Log } from "#shared/process/log.ts";
import { unknownUrl } from "../http/answer-faults.ts";
import { memberScript, servePage } from "../operations/serve-console.ts";
import { readInput, serveOperation } from "../operations/serve-operation.ts";
import type { IdempotencyRecords } from "../jobs/idempotency-records.ts";
import { type AllowedLogin, allowLogin, loginRoutes } from "./authorize.ts";
import { assertPublicName, memberBy, memberOf, memberProver, type ProveMember } from "./member-access.ts";
import { actorOf, type MemberSignIn, memberSessionRoutes } from "./member-sign-in.ts";

export const memberPrefix = "/console/member/v1";

export interface MemberParts extends MemberSignIn, Pick<MemberSite, "usage" | "requests" | "modelsOf" | "currency"> {
  readonly log: Log;
  /** Keeps the codes of logins, for all gateways. */
  readonly codes: IdempotencyRecords;
  /** Mounts the routes that call models, for the members that `prove` lets in. */
  readonly mountPlayground: (scope: FastifyInstance, prove: ProveMember) => void;
}

/** Mounts the pages and the operations of members at the public port, and nothing of the operations port. */
export function serveMembers(server: FastifyInstance, parts: MemberParts): void {
  void server.register(async (scope) => {
    assertPublicName(scope, parts.publicUrl);
    memberSessionRoutes(scope, parts);
    loginRoutes(scope, { ...parts, makeKey: (allowed, request) => makeLoginKey(allowed, request, parts) });
    servePage(scope, memberScript);
    const prove = memberProver(parts);
    parts.mountPlayground(scope, prove);
    void scope.register(
      async (api) => {
        api.addHook("onRequest", async (_, reply) => void reply.header("cache-control", "no-store"));
        api.addHook("onRequest", async (request) => void (await prove(request)));
        for (const name of Object.keys(memberOperations) as (keyof MemberOperations)[]) mount(api, name, parts);
        api.all("/*", (request) => {
          throw unknownUrl(request);
        });
      },
      { prefix: memberPrefix },
    );
  });
}

function mount(api: FastifyInstance, name: keyof MemberOperations, parts: MemberParts): void {
  const operation: AdminOperation & { run(input: Input, site: MemberSite): Promise<unknown> } = memberOperations[name];
  serveOperation(api, operation, {
    parts,
    handle: async (request, reply) => {
      const member = memberOf(request);
      const site = siteOf(member, { by: actorOf(member, member.session.id), request }, parts);
      return reply.code(operation.status).send(await operation.run(readInput(operation, request), site));
    },
  });
}

/** Makes the key of a login as the member would. */
async function makeLoginKey({ person, team, computer }: AllowedLogin, request: FastifyRequest, parts: MemberParts) {
  const member = await memberBy(person, parts);
  if (member === undefined) throw new Fault("insufficient_permissions", { message: "This person was disabled." });
  const site = siteOf(member, { by: `person ${printOf(person)}, login on ${computer}`, request }, parts);
  return memberOperations.makeOwnKey.run({ params: {}, query: {}, body: { name: `login on ${computer}`, team } }, site);
}

function siteOf(
  member: PersonInTeams,
  { by, request }: { readonly by: string; readonly request: FastifyRequest },
  parts: MemberParts,
): MemberSite {
  return {
    ...parts,
    member,
    actor: { by, request: request.id },
    allowLogin: (wish) => allowLogin(wish, member.person.name, parts),
    address: request.ip,
    baseUrl: `${parts.publicUrl}/v1`,
    version: packageJson.version,
  };
}
