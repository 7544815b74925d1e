import cl100kBase from "js-tiktoken/ranks/cl100k_base";
import { Fault } from "#shared/fault/fault.ts";
import { serveOrders } from "#shared/process/work-thread.ts";
import { readRequest, type ReadRequest, type ReadOrder } from "../requests/read-request.ts";
import { reads } from "./reads.ts";

/** The tokens of `cl100k_base` in base64, by id. Made with the first request that needs it. */
let tokens: readonly string[] | undefined;

/**
 * Returns the text that a client made into token ids of OpenAI's `cl100k_base`, as LangChain does for every embedding
 * model. A character that the client cut in two at an end of the list is left out.
 */
function textOfTokens(ids: readonly unknown[], param: string): string {
  tokens ??= cl100kBase.bpe_ranks.split("\n").flatMap((line) => line.split(" ").slice(2));
  const bytes: Buffer[] = [];
  for (const [index, id] of ids.entries()) {
    const token = typeof id === "number" ? tokens[id] : undefined;
    if (token === undefined) {
      throw new Fault("invalid_value", {
        message: `'${param}[${index}]' must be the id of a token of OpenAI's cl100k_base; send texts in place of tokens.`,
        param: `${param}[${index}]`,
      });
    }
    bytes.push(Buffer.from(token, "base64"));
  }
  const text = Buffer.concat(bytes).toString();
  let [from, to] = [0, text.length];
  while (text[from] === cutCharacter) from += 1;
  while (to > from && text[to - 1] === cutCharacter) to -= 1;
  return text.slice(from, to);
}

/** A piece of a character that was cut. */
const cutCharacter = "\uFFFD";

serveOrders(
  ({ bytes, ...order }: ReadOrder) => {
    try {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return readRequest(reads, { ...order, bytes: body, textOfTokens });
    } finally {
      // Nothing else refers to these bytes. Memory that waits for the garbage collector makes it run more often.
      if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
    }
  },
  ({ body }: ReadRequest) => body,
);
