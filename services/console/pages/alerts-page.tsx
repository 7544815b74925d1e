import { useEffect, useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { OpenAlarm } from "#shared/admin/alert-operations.ts";
import { type AlarmKind, alarmKinds } from "#shared/alerts/alarm.ts";
import { type AlertFormat, alertFormats } from "#shared/alerts/alert-formats.ts";
import type { ShownAlert } from "#shared/records/alert-record.ts";
import { type ApiFault, change, faultOf, useAnswer } from "../admin-api.ts";
import { Confirm, Dialog, WindowButton } from "../dialogs.tsx";
import { ActionForm, Button, Check, Choice, fieldsOf, TextField } from "../forms.tsx";
import { CopyText, FaultNotice, Notice } from "../parts.tsx";
import { type Column, Table } from "../table.tsx";
import { Badges, Name, None, Time } from "../values.tsx";
import { RecordList } from "./record-page.tsx";

const kindWords: Readonly<Record<AlarmKind, string>> = {
  "machine-away": "A machine is away",
  budget: "A budget is used to 80 or 100 %",
  "keep-unmet": "A kept model is not in memory",
  errors: "Many requests fail",
  certificate: "A certificate expires soon",
  disk: "A disk is nearly full",
  "gateway-away": "A gateway is gone",
};

const columns: readonly Column<ShownAlert>[] = [
  ["target", ({ alert }) => <Name>{alert}</Name>, "", ({ alert }) => alert],
  ["host", ({ host }) => <Name>{host}</Name>, "", ({ host }) => host],
  ["told of", ({ on }) => <Badges words={on} />, "wide"],
  ["after", ({ after }) => after ?? <None />, "wide"],
  ["format", ({ format }) => format, "wide", ({ format }) => format],
  ["added", ({ created_at: at }) => <Time at={at} />, "wide", ({ created_at: at }) => Date.parse(at)],
  ["", ({ alert }) => <AlertActions alert={alert} />],
];

export function Alerts() {
  return (
    <RecordList
      title="Alerts"
      about="One gateway calls these targets when something is wrong, and again when that is over."
      actions={
        <WindowButton text="Add a target" value="add" isPrimary window={(close) => <AddDialog onClose={close} />} />
      }
      of={useAnswer("GET /alerts", {})}
      keyOf={({ alert }) => alert}
      empty="No target yet. Nobody is told when a machine is away or a budget is used up."
      columns={columns}
    >
      <OpenAlarms />
    </RecordList>
  );
}

const alarmColumns: readonly Column<OpenAlarm>[] = [
  ["since", ({ began_at: at }) => <Time at={at} />, "", ({ began_at: at }) => Date.parse(at)],
  ["what is wrong", ({ text }) => <bdi>{text}</bdi>],
  [
    "told",
    ({ told }) =>
      told.length === 0 ? "nobody yet" : <Badges words={told.map(({ alert, outcome }) => `${alert}: ${outcome}`)} />,
  ],
];

function OpenAlarms() {
  const { answer } = useAnswer("GET /alarms", {});
  if (answer === undefined) return null;
  return (
    <section>
      <h2>Wrong now</h2>
      <Table
        caption="Open alarms"
        name="open"
        rows={answer.data}
        columns={alarmColumns}
        keyOf={({ kind, subject }) => `${kind} ${subject}`}
        empty="Nothing that a target is to be told of."
      />
    </section>
  );
}

function AlertActions({ alert }: Pick<ShownAlert, "alert">) {
  // It is not in the address, since a link must not call anybody.
  const [isTested, setTested] = useState(false);
  return (
    <div class="actions">
      <Button text="Test" onDo={() => setTested(true)} opens />
      {isTested && <TestDialog alert={alert} onClose={() => setTested(false)} />}
      <Confirm
        action="Remove"
        object={alert}
        effect="No gateway calls it any more."
        onDo={() => change("DELETE /alerts/{alert}", { params: { alert } })}
      />
    </div>
  );
}

/** Calls a target, and shows what came of it. */
function TestDialog({ alert, onClose }: Pick<ShownAlert, "alert"> & { readonly onClose: () => void }) {
  const [told, setTold] = useState<{ readonly status?: number; readonly fault?: ApiFault }>();
  useEffect(() => {
    change("POST /alerts/{alert}/test", { params: { alert } }).then(setTold, (error: unknown) =>
      setTold({ fault: faultOf(error) }),
    );
  }, []);
  return (
    <Dialog title={["Test of ", <bdi>{alert}</bdi>]} onClose={onClose}>
      {told === undefined && <p class="quiet">Calling it…</p>}
      {told?.status && <Notice tone="good">It took the call with the status {told.status}.</Notice>}
      <FaultNotice fault={told?.fault} />
    </Dialog>
  );
}

const notAgain = { question: "Has the secret been copied?", about: "The secret is not shown again." };

function AddDialog({ onClose }: { readonly onClose: () => void }) {
  const [given, setGiven] = useState({ to: "", name: "", after: "", format: "standard" as AlertFormat });
  const [on, setOn] = useState<readonly AlarmKind[]>(["machine-away"]);
  const [added, setAdded] = useState<AnswerTo<"POST /alerts">>();
  const field = fieldsOf(given, setGiven);
  const add = async (): Promise<void> => {
    const { name, after, ...body } = given;
    const made = await change("POST /alerts", {
      body: { ...body, on: [...on], ...(name && { name }), ...(after && { after }) },
    });
    if (made.secret === null) onClose();
    else setAdded(made);
  };
  if (added?.secret) {
    return (
      <Dialog title={["The signing secret of ", <bdi>{added.alert}</bdi>]} onClose={onClose} lastChance={notAgain}>
        <Notice tone="warn">The secret is shown only once. The receiver verifies each call with it.</Notice>
        <CopyText label="The secret" text={added.secret} />
      </Dialog>
    );
  }
  return (
    <Dialog title="Add a target" onClose={onClose}>
      <ActionForm action="Add" onDo={add} onCancel={onClose}>
        <TextField
          {...field("to", "URL")}
          placeholder="https://hooks.example.org/…"
          hint="It is stored encrypted, and only its host is shown again."
          required
        />
        <Choice
          label="Format"
          value={given.format}
          onChoose={(format) => setGiven({ ...given, format: format as AlertFormat })}
          options={alertFormats}
          hint="standard is signed JSON, by Standard Webhooks."
        />
        <fieldset>
          <legend>Call it when</legend>
          {alarmKinds.map((kind) => (
            <Check
              key={kind}
              label={kindWords[kind]}
              checked={on.includes(kind)}
              onCheck={(checked) => setOn(checked ? [...on, kind] : on.filter((each) => each !== kind))}
            />
          ))}
        </fieldset>
        <div class="two">
          <TextField
            {...field("after", "Call after")}
            placeholder="as usual"
            hint="How long it must last, such as 2m."
          />
          <TextField {...field("name", "Name")} placeholder="that of the host" hint="Small letters, digits, hyphens." />
        </div>
      </ActionForm>
    </Dialog>
  );
}
