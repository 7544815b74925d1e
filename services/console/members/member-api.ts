/** The operations of members as their pages call them. */
import type { z } from "zod";
import type { CallsOf } from "#shared/admin/admin-call.ts";
import type { MemberOperations } from "#shared/admin/member-operations.ts";
import { callsAt } from "../admin-api.ts";

type OwnCalls = CallsOf<MemberOperations>;
export type OwnAnswer<Of extends keyof OwnCalls> = z.output<OwnCalls[Of]["answer"]>;

export const { read: readOwn, change: changeOwn, useAnswer: useOwn } = callsAt<OwnCalls>("/console/member/v1");
