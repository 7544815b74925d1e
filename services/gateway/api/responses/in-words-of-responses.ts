import { Fault } from "#shared/fault/fault.ts";

/** Maps the path of a chat field, as machines name it, to the field of the Responses API that it came from. */
const fieldsOfChats: readonly (readonly [inChats: RegExp, here: string])[] = [
  [/^messages(?:$|\[.*)/, "input"],
  [/^max_tokens$/, "max_output_tokens"],
  [/^response_format(?:\.json_schema)?/, "text.format"],
  [/^reasoning_effort$/, "reasoning.effort"],
  [/^logprobs$/, "include"],
  [/^tools\[.*/, "tools"],
];

/**
 * Renames the field in a machine's fault. A machine names the field of the chat that it got; the client must read the
 * field that it sent.
 */
export function inWordsOfResponses(fault: Fault): Fault {
  const { code, message, param, internal, retryAfterSeconds } = fault;
  if (param === undefined) return fault;
  for (const [inChats, here] of fieldsOfChats) {
    if (!inChats.test(param)) continue;
    const own = param.replace(inChats, here);
    return new Fault(code, {
      message: message.replaceAll(`'${param}'`, `'${own}'`),
      param: own,
      internal,
      retryAfterSeconds,
    });
  }
  return fault;
}
