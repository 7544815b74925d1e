import { z } from "zod";
import { keyId } from "../keys/key-token.ts";
import type { Peppers } from "../keys/pepper.ts";
import { seal, unseal } from "../keys/seal.ts";

/** Bytes of the captured content of one key, above which the oldest goes, and of a site, above which no more is kept. */
export const capturedSums = { keyBytesMax: 256 * 1024 * 1024, siteBytesMax: 2 * 1024 * 1024 * 1024 };

const capturedPart = z.object({
  kind: z.enum(["reasoning", "text", "tool_call"]),
  choice: z.int().nonnegative().describe("Which of several answers it belongs to, from 0."),
  text: z.string().describe("Of a tool call its tool and the arguments."),
});
export type CapturedPart = z.output<typeof capturedPart>;

/** The captured content of a request, as admins see it. */
export const capturedContent = z.object({
  id: z.string(),
  key: keyId,
  prompt: z
    .unknown()
    .describe("The request in the form that machines get, without the bytes of files. A text if it is cut."),
  answer: z.array(capturedPart).describe("The answer as far as it was passed on to the client."),
  cut: z.boolean().describe("True if a part is left out, for which there were no bytes."),
});
export type CapturedContent = z.output<typeof capturedContent>;
/** Stands before the id of a key, so that its captured content has an encryption key of its own. */
const ofCaptures = "capture ";
type CapturedName = Pick<CapturedContent, "id" | "key">;

/** Encrypts the content of a request, given as JSON, so that it passes for no other request's. */
export function sealContent({ id, key }: CapturedName, json: string, peppers: Peppers): Uint8Array {
  return seal(Buffer.from(json), peppers.responsesKeys(ofCaptures + key)[0], `${key} ${id}`);
}

/** Opens the content of a request; undefined if it was altered or is under a pepper that is gone. */
export function openContent(
  { id, key }: CapturedName,
  sealed: Uint8Array,
  peppers: Peppers,
): CapturedContent | undefined {
  const opened = unseal(sealed, peppers.responsesKeys(ofCaptures + key), `${key} ${id}`);
  return opened && { id, key, ...JSON.parse(opened.bytes.toString()) };
}
