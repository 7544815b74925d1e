import { Fault } from "#shared/fault/fault.ts";
import type { Tools } from "./openai-profile.ts";

/** For servers that take every form of `tool_choice`. */
export function everyChoice(asked: Tools): Tools {
  return asked;
}

/** For servers that take it as a word only: a function that is named is the only one that is offered. */
export function choiceInWords(asked: Tools): Tools {
  const { tools, tool_choice: choice } = asked;
  if (choice === undefined || typeof choice === "string") return asked;
  return { tools: tools?.filter((tool) => tool.function.name === choice.function.name), tool_choice: "required" };
}

/** For servers that always leave the choice to the model: `none` is honoured by offering nothing. */
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
