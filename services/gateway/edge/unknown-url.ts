import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { pathOf } from "./log-requests.ts";

const pathCharactersTold = 200;

/** There is nothing at a request's URL; but perhaps a base URL lacks its `/v1`, has it twice, or ends in a slash. */
export function unknownUrl(request: FastifyRequest): Fault {
  const path = pathOf(request).slice(0, pathCharactersTold);
  const meant = [`/v1${path}`, path.replace(/^(?:\/+v1)+(?=\/)/, "/v1"), path.replace(/\/+$/, "")].find((url) =>
    isRoute(request, url),
  );
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  return new Fault("unknown_url", { message: `There is nothing at ${request.method} ${path}.${hint}` });
}

function isRoute({ server, method }: FastifyRequest, url: string): boolean {
  return url !== "" && server.hasRoute({ url, method });
}
