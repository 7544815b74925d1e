/** The operations of members as their pages call them. */
import type { z } from "zod";
import { callOf, type CallsOf, type SentParts } from "#shared/admin/admin-call.ts";
import type { MemberOperations } from "#shared/admin/member-operations.ts";
import { changes, send, type Shown, useRead } from "../admin-api.ts";

type OwnCalls = CallsOf<MemberOperations>;
type OwnCallName = keyof OwnCalls;
export type OwnAnswer<Of extends OwnCallName> = z.output<OwnCalls[Of]["answer"]>;
type OwnSent<Of extends OwnCallName> = SentParts<OwnCalls[Of]>;

const apiPath = "/console/member/v1";

function ownCall<Of extends OwnCallName>(name: Of, sent: OwnSent<Of>) {
  const [method = "", path = ""] = name.split(" ");
  const call = callOf({ method, path }, sent);
  return { ...call, path: apiPath + call.path };
}

export async function readOwn<Of extends OwnCallName>(name: Of, sent: OwnSent<Of>): Promise<OwnAnswer<Of>> {
  return (await (await send(ownCall(name, sent).path)).json()) as OwnAnswer<Of>;
}

/** Makes a change, and has every shown answer read anew. */
export async function changeOwn<Of extends OwnCallName>(name: Of, sent: OwnSent<Of>): Promise<OwnAnswer<Of>> {
  const { path, method, body } = ownCall(name, sent);
  const answer = (await (await send(path, { method, body: body ?? {} })).json()) as OwnAnswer<Of>;
  changes.value += 1;
  return answer;
}

export function useOwn<Of extends OwnCallName>(name: Of, sent: OwnSent<Of>): Shown<OwnAnswer<Of>> {
  return useRead(ownCall(name, sent).path);
}
