import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { KeyKind } from "#shared/keys/key-token.ts";
import { query } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Dialog } from "../dialogs.tsx";
import { ActionForm, Choice } from "../forms.tsx";
import { baseUrl } from "../session.ts";
import { IssuedDialog } from "./issued-key.tsx";
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
  const [team, setTeam] = useState(query.value.get("team") ?? "");
  const teams = useAnswer("GET /teams", {}).answer?.data.map((each) => each.team) ?? [];
  const [issued, setIssued] = useState<Issued>();
  const issue = async (): Promise<void> => {
    const body = kind === "model" ? { ...bodyOf(terms), ...(team !== "" && { team }) } : { name: terms.name };
    setIssued(await change("POST /keys", { body: { kind, ttl, ...body } }));
  };
  if (issued !== undefined) return <IssuedDialog issued={issued} baseUrl={baseUrl()} onClose={onClose} />;
  return (
    <Dialog title="Issue a key" onClose={onClose}>
      <ActionForm action="Issue" onDo={issue} onCancel={onClose}>
        <Choice label="Kind" value={kind} onChoose={(each) => setKind(each as KeyKind)} options={kinds} />
        {kind === "model" && teams.length > 0 && (
          <Choice
            label="Team"
            param="team"
            value={team}
            onChoose={setTeam}
            options={[["", "none: a key of the site"], ...teams]}
            hint="The team's terms hold too."
          />
        )}
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
