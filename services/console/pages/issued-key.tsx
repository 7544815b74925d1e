import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { Dialog } from "../dialogs.tsx";
import { CopyText, Notice } from "../parts.tsx";

const notAgain = { question: "Has the key been copied?", about: "The key is not shown again." };

interface IssuedProps {
  readonly issued: Pick<AnswerTo<"POST /keys">, "name" | "key" | "kind">;
  readonly baseUrl: string;
  readonly onClose: () => void;
}

/** Shows a key this once, with lines to copy that use it. */
export function IssuedDialog({ issued, baseUrl, onClose }: IssuedProps) {
  const { name, key, kind } = issued;
  const uses = kind === "model" ? Object.entries(usesOf(key, baseUrl)) : [];
  return (
    <Dialog title={["The key of ", <bdi>{name}</bdi>]} onClose={onClose} lastChance={notAgain}>
      <Notice tone="warn">The key is shown only once. Nobody can read it again, not even an administrator.</Notice>
      {[["The key", key] as const, ...uses].map(([label, text]) => (
        <CopyText key={label} label={label} text={text} />
      ))}
    </Dialog>
  );
}

/** Returns the uses of a key that people paste first, by their names. */
function usesOf(key: string, baseUrl: string): Readonly<Record<string, string>> {
  return {
    curl: `curl ${baseUrl}/models -H "Authorization: Bearer ${key}"`,
    "Node, with the package openai": `import OpenAI from "openai";\nconst client = new OpenAI({ baseURL: "${baseUrl}", apiKey: "${key}" });`,
    "Python, with the package openai": `from openai import OpenAI\nclient = OpenAI(base_url="${baseUrl}", api_key="${key}")`,
    "A coding agent, such as opencode": `TRUNKLINE_BASE_URL=${baseUrl} TRUNKLINE_KEY=${key} trunkline connect opencode`,
  };
}
