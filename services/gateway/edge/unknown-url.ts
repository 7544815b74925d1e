import type { FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { pathOf } from "./log-requests.ts";

const pathCharactersTold = 200;

/** Chat URLs of other APIs, which this gateway does not serve. */
const otherChats = /^(?:\/v1)?\/messages$|^\/api\/(?:chat|generate)$/;
const keptResponses = /^\/v1\/responses\/|^\/v1\/conversations(?:\/|$)/;
const chats = "/v1/chat/completions";
const reference = "/docs";

/** Returns the fault for an unknown URL, with a hint when the intended URL is plain. */
export function unknownUrl(request: FastifyRequest): Fault {
  const path = pathOf(request).slice(0, pathCharactersTold);
  return new Fault("unknown_url", { message: `There is nothing at ${request.method} ${path}.${hint(request, path)}` });
}

/**
 * Returns the hint for a URL. A base URL may lack its `/v1`, have it twice, or end in a slash. A client may speak
 * another API.
 */
function hint(request: FastifyRequest, path: string): string {
  const isHere = (url: string, method: string = request.method): boolean =>
    url !== "" && request.server.hasRoute({ url, method });
  const near = [
    `/v1${path}`,
    path.replace(/^(?:\/+v1)+(?=\/)/, "/v1"),
    path.replace(/\/+$/, ""),
    path.replace(/\/{2,}/g, "/"),
  ];
  const meant = near.find((url) => isHere(url));
  if (meant !== undefined) return ` Did you mean ${meant}?`;
  if (!isHere(reference, "GET")) return "";
  const chatsAre = otherChats.test(path) ? ` Chats are asked for at ${chats}.` : "";
  const isNotKept = keptResponses.test(path) ? " No response is kept here: send the whole conversation each time." : "";
  return `${chatsAre}${isNotKept} What is here is told at ${reference}.`;
}
