/** The ways out of an empty list: the page that helps, and the command that does the same. */
import { to } from "./address.ts";
import { mayChange } from "./session.ts";

const remedies = {
  pair: ["Pair a machine", to(["machines"], { pair: "new" }), "machines pair <name>"],
  pull: ["Pull a model", to(["models"], { pull: "new" }), "models pull <model>"],
  route: ["Make a route", to(["models", "routes"], { edit: "*new" }), "routes set gpt-4o <model>"],
  chat: ["Try a chat", to(["playground"]), "chat <model>"],
} as const;

/** Says what to do. A viewer, who may not, is told what an operator runs. */
export function Remedy({ by }: { readonly by: keyof typeof remedies }) {
  const [action, href, command] = remedies[by];
  return [
    mayChange() ? [<a href={href}>{action}</a>, ", or run "] : "An operator runs ",
    <code>trunkline {command}</code>,
    ".",
  ];
}
