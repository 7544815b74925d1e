import type { FastifyInstance } from "fastify";
import packageJson from "../../../package.json" with { type: "json" };
import { type MemberOperations, memberOperations, type MemberSite } from "#shared/admin/member-operations.ts";
import type { AdminOperation, Input } from "#shared/admin/operation.ts";
import { unknownUrl } from "../http/answer-faults.ts";
import { memberScript, servePage } from "../operations/serve-console.ts";
import { readInput, serveOperation } from "../operations/serve-operation.ts";
import { assertPublicName, memberOf, proveMembers } from "./member-access.ts";
import { actorOf, type MemberSignIn, memberSessionRoutes } from "./member-sign-in.ts";

export const memberPrefix = "/console/member/v1";

export interface MemberParts extends MemberSignIn, Pick<MemberSite, "usage" | "requests" | "modelsOf" | "currency"> {}

/** Mounts the pages and the operations of members at the public port, and nothing of the operations port. */
export function serveMembers(server: FastifyInstance, parts: MemberParts): void {
  void server.register(async (scope) => {
    assertPublicName(scope, parts.publicUrl);
    memberSessionRoutes(scope, parts);
    servePage(scope, memberScript);
    void scope.register(
      async (api) => {
        api.addHook("onRequest", async (_, reply) => void reply.header("cache-control", "no-store"));
        proveMembers(api, parts);
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
      const actor = { by: actorOf(member, member.session.id), request: request.id };
      const site = { ...parts, member, actor, baseUrl: `${parts.publicUrl}/v1`, version: packageJson.version };
      return reply.code(operation.status).send(await operation.run(readInput(operation, request), site));
    },
  });
}
