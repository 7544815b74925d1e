import { useState } from "preact/hooks";
import { keptWords } from "#shared/fleet/fleet-words.ts";
import type { ShownPlan } from "#shared/fleet/shown-plan.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Confirm } from "../dialogs.tsx";
import { ActionForm, listIn, TextField } from "../forms.tsx";
import { fleet } from "../live.ts";
import { Answered, Page, Section } from "../parts.tsx";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Badge, MachineLink, ModelLink, None } from "../values.tsx";
import { ModelTabs } from "./model-tabs.tsx";

type PlanStep = ShownPlan["data"][number];

const columns: readonly Column<PlanStep>[] = [
  [
    "machine",
    ({ machine }) => (machine === null ? <None text="none" /> : <MachineLink name={machine} />),
    "",
    ({ machine }) => machine,
  ],
  [
    "state",
    ({ state }) => <Badge tone={keptWords[state][0]}>{keptWords[state][1]}</Badge>,
    "",
    ({ state }) => keptWords[state][1],
  ],
  ["why", ({ why }) => <bdi>{why}</bdi>, "", ({ why }) => why],
];

/** The wish to have a model in the memory of some machines, and how far that is. */
export function KeptModel({ id }: { readonly id: string }) {
  const plan = useAnswer("GET /plan", {}, fleet.value?.heardAt);
  return (
    <Section title="Kept in memory">
      <Answered of={plan}>
        {({ data, keeps }) => {
          const wish = keeps.find(({ model }) => model === id);
          const steps = data.filter(({ model }) => model === id);
          return (
            <>
              {wish !== undefined && (
                <Table
                  name="copies"
                  caption={`Copies of ${id}`}
                  rows={steps}
                  keyOf={(_, place) => String(place)}
                  empty="The plan names no machine for this model yet."
                  columns={columns}
                />
              )}
              {mayChange() && <KeepForm key={wish?.changed_at} id={id} wish={wish} />}
              {wish === undefined && !mayChange() && <p class="quiet">No machine keeps this model.</p>}
            </>
          );
        }}
      </Answered>
    </Section>
  );
}

function KeepForm({ id, wish }: { readonly id: string; readonly wish: ShownPlan["keeps"][number] | undefined }) {
  const [copies, setCopies] = useState(String(wish?.copies ?? 1));
  const [machines, setMachines] = useState(wish?.machines?.join(" ") ?? "");
  const at = { params: { model: id } };
  const named = listIn(machines);
  const body = { copies: Number(copies), machines: named.length === 0 ? null : named };
  const all = "all that let models be placed";
  return (
    <>
      <ActionForm
        action={wish === undefined ? "Keep it in memory" : "Change"}
        onDo={() => change("PUT /keeps/{model}", { ...at, body })}
      >
        <div class="two">
          <TextField
            label="Number of machines"
            param="copies"
            type="number"
            value={copies}
            onText={setCopies}
            required
          />
          <TextField
            label="Only on these"
            param="machines"
            value={machines}
            onText={setMachines}
            suggest={{ of: "machines", isList: true }}
            placeholder={all}
          />
        </div>
        <p class="quiet">Only machines with TRUNKLINE_MANAGE=place load a model by themselves and keep it.</p>
      </ActionForm>
      {wish !== undefined && (
        <div class="actions">
          <KeepNoLonger id={id} />
        </div>
      )}
    </>
  );
}

function KeepNoLonger({ id }: { readonly id: string }) {
  return (
    <Confirm
      action="Stop keeping"
      object={id}
      effect="No machine keeps the model any longer. It stays in memory until another one needs the room."
      onDo={() => change("DELETE /keeps/{model}", { params: { model: id } })}
    />
  );
}

/** All models that machines are to keep in memory, with a row for each copy. */
export function KeptModels() {
  const plan = useAnswer("GET /plan", {}, fleet.value?.heardAt);
  return (
    <Page title="Kept models" about="Models that machines hold in memory, whatever else is asked for.">
      <ModelTabs at="kept" />
      <Answered of={plan} waiting="Reading the plan…">
        {({ data, keeps }) => (
          <Table
            caption="Kept models"
            rows={data}
            keyOf={({ model, machine }, place) => `${model} ${machine ?? place}`}
            empty={[
              "No model is kept. Keep one on its page, or run ",
              <code>trunkline models keep &lt;model&gt;</code>,
              ".",
            ]}
            columns={[
              ["model", ({ model }) => <ModelLink id={model} />, "", ({ model }) => model],
              ["wished on", (step) => wishText(keeps.find(({ model }) => model === step.model))],
              ...columns,
              ...(mayChange() ? [actions] : []),
            ]}
          />
        )}
      </Answered>
    </Page>
  );
}

const actions: Column<PlanStep> = ["actions", ({ model }) => <KeepNoLonger id={model} />];

function wishText(wish: ShownPlan["keeps"][number] | undefined): string {
  if (wish === undefined) return "–";
  return wish.machines?.join(", ") ?? (wish.copies === 1 ? "any machine" : `any ${wish.copies} machines`);
}
