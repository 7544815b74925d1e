import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { KeyKind } from "#shared/keys/key-token.ts";
import { change } from "../admin-api.ts";
import { Dialog } from "../dialogs.tsx";
import { ActionForm, Choice } from "../forms.tsx";
import { CopyText, Notice } from "../parts.tsx";
import { session } from "../session.ts";
import { bodyOf, NameField, TermFields, termsOf, TtlField } from "./key-terms.tsx";

export type Issued = AnswerTo<"POST /keys">;

const kinds = [
  ["model", "model: calls models"],
  ["viewer", "viewer: reads this console and the admin API"],
  ["admin", "admin: changes everything"],
] as const;

export function IssueDialog({ onClose }: { readonly onClose: () => void }) {
  const [kind, setKind] = useState<KeyKind>("model");
  const [terms, setTerms] = useState(termsOf());
  const [ttl, setTtl] = useState("90d");
  const [issued, setIssued] = useState<Issued>();
  const issue = async (): Promise<void> => {
    const body = kind === "model" ? bodyOf(terms) : { name: terms.name };
    setIssued(await change("POST /keys", { body: { kind, ttl, ...body } }));
  };
  if (issued !== undefined) return <IssuedDialog issued={issued} onClose={onClose} />;
  return (
    <Dialog title="Issue a key" onClose={onClose}>
      <ActionForm action="Issue" onDo={issue} onCancel={onClose}>
        <Choice label="Kind" value={kind} onChoose={(each) => setKind(each as KeyKind)} options={kinds} />
        {kind === "model" ? (
          <TermFields terms={terms} onTerms={setTerms} />
        ) : (
          <NameField value={terms.name} onText={(name) => setTerms({ ...terms, name })} />
        )}
        <TtlField value={ttl} onText={setTtl} />
      </ActionForm>
    </Dialog>
  );
}

const notAgain = { question: "Has the key been copied?", about: "The key is not shown again." };

/** Shows a key this once, with lines to copy that use it. */
export function IssuedDialog({ issued, onClose }: { readonly issued: Issued; readonly onClose: () => void }) {
  const { name, key, kind } = issued;
  const baseUrl = session.value.state === "in" ? session.value.me.base_url : "";
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
