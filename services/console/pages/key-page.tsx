import { useState } from "preact/hooks";
import { termRows, termText } from "#shared/admin/key-terms.ts";
import { totalUsage } from "#shared/usage/sum-usage.ts";
import { dayOf } from "#shared/process/clock.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { query, setQuery, to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { ActionForm, Choice, Confirm, Dialog, FormDialog, QueryButton, TextDialog } from "../forms.tsx";
import { Badge, Bar, type Fact, Facts, FaultNotice, Name, Page, Time, Waiting } from "../parts.tsx";
import { numberText, shortNumber } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { sumBy, sumOf } from "../usage-sums.ts";
import { type Issued, KeyOnce } from "./issue-key.tsx";
import { bodyOf, TermFields, termsOf } from "./key-terms.tsx";
import { keyTones } from "./key-tones.ts";
import { TrailTable } from "./trail-table.tsx";
import { UsageTable } from "./usage-table.tsx";

export function OneKey({ id }: { readonly id: string }) {
  const { answer: key, fault } = useAnswer("GET /keys/{id}", { params: { id } });
  if (key === undefined) {
    return (
      <Page title="Key" about={<Name>{id}</Name>}>
        <Waiting fault={fault}>The key is looked up…</Waiting>
        {fault?.code === "key_not_found" && (
          <p>
            It may have been revoked long ago. <a href={to(["trail"], { find: id })}>Look for it in the trail</a>
          </p>
        )}
      </Page>
    );
  }
  return (
    <Page
      title={key.name}
      about={
        <>
          {key.kind === "model" ? "Key" : `${key.kind} key`} · <Name>{id}</Name>
        </>
      }
      actions={mayChangeKeys() && <KeyActions shown={key} />}
    >
      <section>
        <h2>Terms</h2>
        <Facts
          facts={[
            ["State", <Badge tone={keyTones[key.state]}>{key.state}</Badge>],
            ["Expires", <Time at={key.expires_at} />],
            [
              "May call",
              key.kind === "model"
                ? key.scopes.map((scope) => (
                    <>
                      <Name key={scope}>{scope}</Name>{" "}
                    </>
                  ))
                : "no models",
            ],
            ...(key.kind === "model" ? termFacts(key) : []),
            [
              "Issued",
              <>
                <Time at={key.created_at} />
                {key.issued_by && (
                  <>
                    {" "}
                    by{" "}
                    <a href={to(["keys", key.issued_by])}>
                      <Name>{key.issued_by}</Name>
                    </a>
                  </>
                )}
              </>,
            ],
            [
              "Old secrets good until",
              key.old_secrets_valid_until.length === 0
                ? null
                : key.old_secrets_valid_until.map((at) => <Time key={at} at={at} />),
            ],
          ]}
        />
      </section>
      <UsageOf id={id} />
      <TrailOf id={id} />
      <p class="actions">
        <a class="button" href={to(["requests"], { key: id })}>
          Its requests
        </a>
      </p>
    </Page>
  );
}

function termFacts(key: ShownKey): readonly Fact[] {
  return termRows.map((row) => {
    const [name, { title, ...about }] = row;
    const usual = about.kind === "mark" ? (about.usual ? "yes" : "no") : about.without;
    if (name === "budget" && key.budget !== null) return [title, <Budget id={key.id} budget={key.budget} />];
    return [title, termText(row, key, numberText) ?? usual];
  });
}

function Budget({
  id,
  budget: { tokens, per },
}: {
  readonly id: string;
  readonly budget: NonNullable<ShownKey["budget"]>;
}) {
  const today = dayOf(Date.now());
  const from = per === "day" ? today : `${today.slice(0, 7)}-01`;
  const { answer } = useAnswer("GET /usage", { query: { key: id, from, to: today } });
  const all = `${shortNumber(tokens)} tokens a ${per}`;
  if (answer === undefined) return <>{all}</>;
  const { prompt_tokens: prompt, completion_tokens: completion } = totalUsage(answer.data);
  const used = prompt + completion;
  return (
    <>
      <Bar part={used} whole={tokens} label={`${numberText(used)} of ${numberText(tokens)} tokens used`} />{" "}
      {shortNumber(used)} of {all}
    </>
  );
}

function UsageOf({ id }: { readonly id: string }) {
  const { answer, fault } = useAnswer("GET /usage", { query: { key: id } });
  return (
    <section>
      <header>
        <h2>Usage of the last 30 days</h2>
        <a href={to(["usage"], { key: id, by: "day" })}>By day</a>
      </header>
      <FaultNotice fault={fault} />
      {answer !== undefined && (
        <UsageTable
          caption="Usage by model"
          sums={sumBy(answer.data, "model")}
          total={sumOf("all", answer.data)}
          part="model"
        />
      )}
    </section>
  );
}

function TrailOf({ id }: { readonly id: string }) {
  const { answer, fault } = useAnswer("GET /log", { query: { key: id, limit: 20 } });
  return (
    <section>
      <h2>Its trail</h2>
      <FaultNotice fault={fault} />
      {answer !== undefined && <TrailTable caption="Trail of this key" entries={answer.data.toReversed()} />}
    </section>
  );
}

function KeyActions({ shown: key }: { readonly shown: ShownKey }) {
  const at = { params: { id: key.id } };
  const close = (): void => setQuery("do", undefined);
  const open = query.value.get("do");
  if (key.state === "revoked") return null;
  return (
    <>
      {key.kind === "model" && (
        <QueryButton name="do" value="terms">
          Change terms
        </QueryButton>
      )}
      <QueryButton name="do" value="extend">
        Extend
      </QueryButton>
      <QueryButton name="do" value="rotate">
        New secret
      </QueryButton>
      {key.state === "disabled" ? (
        <Confirm
          action="Enable"
          danger={false}
          question="It is accepted again."
          onDo={() => change("POST /keys/{id}/enable", at)}
        />
      ) : (
        <Confirm
          action="Disable"
          question="It is refused until it is enabled again, and its requests end."
          onDo={() => change("POST /keys/{id}/disable", at)}
        />
      )}
      <Confirm
        action="Revoke"
        question={
          key.kind === "admin"
            ? "It is refused for good, with the admin and viewer keys that it issued, and its sessions end."
            : "It is refused for good, and its streams end at once."
        }
        onDo={() => change("POST /keys/{id}/revoke", at)}
      />
      {open === "terms" && <TermsDialog shown={key} onClose={close} />}
      {open === "extend" && (
        <TextDialog
          title="Extend"
          label="Valid for, from now on"
          hint="Such as 90d, 12h or 30m."
          initial="90d"
          required
          onText={(ttl) => change("POST /keys/{id}/extend", { ...at, body: { ttl } })}
          onClose={close}
        />
      )}
      {open === "rotate" && <RotateDialog shown={key} onClose={close} />}
    </>
  );
}

function TermsDialog({ shown: key, onClose }: { readonly shown: ShownKey; readonly onClose: () => void }) {
  const [terms, setTerms] = useState(termsOf(key));
  return (
    <FormDialog
      title={`Terms of ${key.name}`}
      action="Save"
      onDo={() => change("PATCH /keys/{id}", { params: { id: key.id }, body: bodyOf(terms) })}
      onClose={onClose}
    >
      <TermFields terms={terms} onTerms={setTerms} />
    </FormDialog>
  );
}

const graces = [
  ["24h", "a day"],
  ["1h", "an hour"],
  ["7d", "a week"],
  ["0s", "no time: it has leaked"],
] as const;

function RotateDialog({ shown: key, onClose }: { readonly shown: ShownKey; readonly onClose: () => void }) {
  const [grace, setGrace] = useState<string>("24h");
  const [issued, setIssued] = useState<Issued>();
  return (
    <Dialog title={`Another secret for ${key.name}`} onClose={onClose}>
      {issued === undefined ? (
        <ActionForm
          action="Make it"
          onDo={async () =>
            setIssued(
              await change("POST /keys/{id}/rotate", { params: { id: key.id }, body: { grace, kind: key.kind } }),
            )
          }
        >
          <p>The key keeps its id, its terms and its usage.</p>
          <Choice label="The old secret stays good for" value={grace} onChoose={setGrace} options={graces} />
        </ActionForm>
      ) : (
        <KeyOnce issued={issued} />
      )}
    </Dialog>
  );
}
