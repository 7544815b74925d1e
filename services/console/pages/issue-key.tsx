import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { KeyKind } from "#shared/keys/key-token.ts";
import { go, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { ActionForm, Button, Choice, Dialog, TextField } from "../forms.tsx";
import { CopyText, Notice } from "../parts.tsx";
import { session } from "../session.ts";
import { bodyOf, TermFields, termsOf } from "./key-terms.tsx";

export type Issued = AnswerTo<"POST /keys">;

const kinds = [
  ["model", "calls models"],
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
  if (issued !== undefined) {
    return (
      <Dialog title={`The key of ${issued.name}`} onClose={onClose}>
        <KeyOnce issued={issued} />
        <div class="actions">
          <Button text="Go to the key" onDo={() => go(to(["keys", issued.id]))} />
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Issue a key" onClose={onClose}>
      <ActionForm action="Issue" onDo={issue}>
        <Choice label="It" value={kind} onChoose={(each) => setKind(each as KeyKind)} options={kinds} />
        {kind === "model" ? (
          <TermFields terms={terms} onTerms={setTerms} />
        ) : (
          <TextField label="Name" value={terms.name} onText={(name) => setTerms({ ...terms, name })} required />
        )}
        <TextField label="Valid for" hint="Such as 90d, 12h or 30m." value={ttl} onText={setTtl} required />
      </ActionForm>
    </Dialog>
  );
}

/** Shows a key this once, with lines to copy that use it. */
export function KeyOnce({ issued: { key, kind } }: { readonly issued: Pick<Issued, "key" | "kind"> }) {
  const baseUrl = session.value.state === "in" ? session.value.me.base_url : "";
  const uses = kind === "model" ? Object.entries(usesOf(key, baseUrl)) : [];
  return (
    <>
      <Notice tone="warn">This is shown only once. Nobody can read it again, not even an administrator.</Notice>
      {[["The key", key] as const, ...uses].map(([label, text]) => (
        <CopyText key={label} label={label} text={text} />
      ))}
    </>
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
