import { useState } from "preact/hooks";
import { termRows } from "#shared/admin/key-terms.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Confirm, Dialog, FormDialog, WindowButton } from "../dialogs.tsx";
import { ActionForm, Choice, LinkButton } from "../forms.tsx";
import { Facts, Page, Section } from "../parts.tsx";
import { baseUrl, mayChangeKeys } from "../session.ts";
import { Expiry, KeyName, KeyState, Name, Names, PersonLink, TeamLink, Time, usePeople } from "../values.tsx";
import { Refused } from "./chosen-keys.tsx";
import type { Issued } from "./issue-key.tsx";
import { IssuedDialog } from "./issued-key.tsx";
import { bodyOf, TermFields, termsOf, TtlField } from "./key-terms.tsx";
import { LastUsed, termFacts, useUses } from "./budget-use.tsx";
import { Missing } from "./record-page.tsx";
import { TrailOf } from "./trail-table.tsx";
import { UsageOf } from "./usage-table.tsx";

export function OneKey({ id }: { readonly id: string }) {
  const shown = useAnswer("GET /keys/{id}", { params: { id } });
  const uses = useUses("key");
  const people = usePeople();
  const { answer: key } = shown;
  if (key === undefined) {
    return (
      <Missing title="Key" name={id} of={shown}>
        <p>
          The key may have been revoked long ago. <a href={to(["trail"], { find: id })}>Look for it in the trail</a>
        </p>
      </Missing>
    );
  }
  const { kind, issued_by: issuer, old_secrets_valid_until: ends } = key;
  return (
    <Page
      title={key.name}
      about={[kind === "model" ? "Key · " : `${kind} key · `, <Name>{id}</Name>]}
      actions={mayChangeKeys() && <KeyActions shown={key} />}
    >
      <Section title="Terms">
        <Facts
          facts={[
            ["State", <KeyState state={key.state} />],
            ["Expires", [<Expiry at={key.expires_at} />, ", ", <Time at={key.expires_at} />]],
            ["Last used", <LastUsed id={id} uses={uses} createdAt={key.created_at} />],
            ["May call", kind === "model" ? <Names of={key.scopes} /> : "no models"],
            ...(key.team ? [["Team", <TeamLink name={key.team} />] as const] : []),
            ...(key.person ? [["Person", <PersonLink id={key.person} name={people.get(key.person)} />] as const] : []),
            ...(kind === "model" ? termFacts(termRows, key, { id, uses }) : []),
            ["Issued", [<Time at={key.created_at} />, issuer && [" by ", <KeyName id={issuer} name={undefined} />]]],
            ["Old secrets valid until", ends.length === 0 ? null : ends.map((at) => <Time key={at} at={at} />)],
          ]}
        />
      </Section>
      <UsageOf asked={{ key: id }} />
      <TrailOf object="key" name={id} />
      <p class="actions">
        <LinkButton text="Requests of this key" href={to(["requests"], { key: id })} />
      </p>
    </Page>
  );
}

function KeyActions({ shown: key }: { readonly shown: ShownKey }) {
  const at = { params: { id: key.id } };
  if (key.state === "revoked") return null;
  return (
    <>
      {key.kind === "model" && (
        <WindowButton
          text="Change terms"
          value="terms"
          window={(close) => <TermsDialog shown={key} onClose={close} />}
        />
      )}
      <WindowButton text="Extend" value="extend" window={(close) => <ExtendDialog shown={key} onClose={close} />} />
      <WindowButton text="New secret" value="rotate" window={(close) => <RotateDialog shown={key} onClose={close} />} />
      {key.state === "disabled" ? (
        <Confirm
          action="Enable"
          object={key.name}
          effect="Gateways accept the key again."
          onDo={() => change("POST /keys/{id}/enable", at)}
        />
      ) : (
        <Confirm
          action="Disable"
          object={key.name}
          effect={[<Refused keys={[key]} />, " An admin can enable it again."]}
          onDo={() => change("POST /keys/{id}/disable", at)}
        />
      )}
      <Confirm
        action="Revoke"
        object={key.name}
        isFinal
        effect={<Refused keys={[key]} />}
        onDo={() => change("POST /keys/{id}/revoke", at)}
      />
    </>
  );
}

interface KeyDialogProps {
  readonly shown: ShownKey;
  readonly onClose: () => void;
}

function TermsDialog({ shown: key, onClose }: KeyDialogProps) {
  const [terms, setTerms] = useState(termsOf(key));
  const save = () => change("PATCH /keys/{id}", { params: { id: key.id }, body: bodyOf(terms) });
  return (
    <FormDialog title={["Terms of ", <bdi>{key.name}</bdi>]} action="Save" onDo={save} onClose={onClose}>
      <TermFields terms={terms} onTerms={setTerms} />
    </FormDialog>
  );
}

function ExtendDialog({ shown: { id, name, expires_at: expiresAt }, onClose }: KeyDialogProps) {
  const [ttl, setTtl] = useState("90d");
  const extend = () => change("POST /keys/{id}/extend", { params: { id }, body: { ttl } });
  return (
    <FormDialog title={["Extend ", <bdi>{name}</bdi>]} action="Extend" onDo={extend} onClose={onClose}>
      <p>
        The key now expires <Time at={expiresAt} />: <Expiry at={expiresAt} />.
      </p>
      <TtlField value={ttl} onText={setTtl} />
    </FormDialog>
  );
}

const graces = [
  ["24h", "a day"],
  ["1h", "an hour"],
  ["7d", "a week"],
  ["0s", "no time: it has leaked"],
] as const;

function RotateDialog({ shown: { id, name, kind }, onClose }: KeyDialogProps) {
  const [grace, setGrace] = useState<string>("24h");
  const [issued, setIssued] = useState<Issued>();
  const rotate = async () =>
    setIssued(await change("POST /keys/{id}/rotate", { params: { id }, body: { grace, kind } }));
  if (issued !== undefined) return <IssuedDialog issued={issued} baseUrl={baseUrl()} onClose={onClose} />;
  return (
    <Dialog title={["New secret for ", <bdi>{name}</bdi>]} onClose={onClose}>
      <ActionForm action="Make it" onDo={rotate} onCancel={onClose}>
        <p>The key keeps its id, its terms and its usage.</p>
        <Choice label="The old secret stays good for" value={grace} onChoose={setGrace} options={graces} />
      </ActionForm>
    </Dialog>
  );
}
