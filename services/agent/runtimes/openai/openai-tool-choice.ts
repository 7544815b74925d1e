import { Fault } from "#shared/fault/fault.ts";
import type { Tools } from "./openai-profile.ts";

/** Returns the choice unchanged, for servers that take every form of `tool_choice`. */
export function everyChoice(asked: Tools): Tools {
  return asked;
}

/**
 * Returns `tool_choice` as a word, for servers that take only words. A named function becomes the only offered tool.
 */
export function choiceInWords(asked: Tools): Tools {
  const { tools, tool_choice: choice } = asked;
  if (choice === undefined || typeof choice === "string") return asked;
  return { tools: tools?.filter((tool) => tool.function.name === choice.function.name), tool_choice: "required" };
}

/**
 * Returns the tools without a choice, for servers that always leave it to the model. `none` is honoured by offering no
 * tools.
 */
export function modelsChoice(asked: Tools): Tools {
  const { tools, tool_choice: choice = "auto" } = asked;
  if (choice === "auto") return { tools };
  if (choice === "none") return {};
  throw new Fault("unsupported_value", {
    message:
      "The runtime of this model leaves it to the model whether to call a tool: 'tool_choice' can be auto or none.",
    param: "tool_choice",
  });
}
