import { Fault } from "#shared/fault/fault.ts";

/** What machines call the fields of a chat, and clients of the Responses API what became of them. */
const fieldsOfChats: readonly (readonly [inChats: RegExp, here: string])[] = [
  [/^messages(?:$|\[.*)/, "input"],
  [/^max_tokens$/, "max_output_tokens"],
  [/^response_format(?:\.json_schema)?/, "text.format"],
  [/^reasoning_effort$/, "reasoning.effort"],
  [/^logprobs$/, "include"],
  [/^tools\[.*/, "tools"],
];

/** A fault of a machine names what it was given, which is a chat: its client is told of the field that it sent. */
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
