import { hash } from "node:crypto";
import { limits } from "#shared/protocol/limits.ts";
import type { Asked } from "./asked.ts";

/** Returns the body of a job, and its hash if the body is sent in parts. */
export function jobBody(bytes: Uint8Array): Pick<Asked, "body" | "sha256"> {
  return { body: bytes, sha256: bytes.byteLength > limits.partBytes ? hash("sha256", bytes) : undefined };
}
