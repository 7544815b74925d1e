import { useState } from "preact/hooks";
import { keptWords } from "#shared/fleet/fleet-words.ts";
import type { ShownPlan } from "#shared/fleet/shown-plan.ts";
import { change, useAnswer } from "../admin-api.ts";
import { ActionForm, Confirm, listIn, TextField } from "../forms.tsx";
import { fleet } from "../live.ts";
import { Badge, FaultNotice, MachineLink, Table } from "../parts.tsx";
import { mayChange } from "../session.ts";

/** The wish to have a model in the memory of some machines, and how far that is. */
export function KeptModel({ id }: { readonly id: string }) {
  const { answer, fault } = useAnswer("GET /plan", {}, fleet.value?.heardAt);
  const wish = answer?.keeps.find(({ model }) => model === id);
  return (
    <section>
      <h2>Kept in memory</h2>
      <FaultNotice fault={fault} />
      {answer !== undefined && wish !== undefined && (
        <Table
          caption={`Copies of ${id}`}
          rows={answer.data.filter(({ model }) => model === id).map((step, place) => ({ step, place }))}
          keyOf={({ place }) => String(place)}
          empty=""
          columns={[
            {
              name: "machine",
              cell: ({ step: { machine } }) =>
                machine === null ? <span class="quiet">none</span> : <MachineLink name={machine} />,
            },
            {
              name: "state",
              cell: ({ step: { state } }) => <Badge tone={keptWords[state][0]}>{keptWords[state][1]}</Badge>,
            },
            { name: "why", cell: ({ step: { why } }) => <bdi>{why}</bdi> },
          ]}
        />
      )}
      {answer !== undefined && mayChange() && <KeepForm key={wish?.changed_at} id={id} wish={wish} />}
      {answer !== undefined && wish === undefined && !mayChange() && <p class="quiet">No machine is to keep it.</p>}
    </section>
  );
}

function KeepForm({ id, wish }: { readonly id: string; readonly wish: ShownPlan["keeps"][number] | undefined }) {
  const [copies, setCopies] = useState(String(wish?.copies ?? 1));
  const [machines, setMachines] = useState(wish?.machines?.join(" ") ?? "");
  const at = { params: { model: id } };
  const named = listIn(machines);
  const body = { copies: Number(copies), machines: named.length === 0 ? null : named };
  return (
    <>
      <ActionForm
        action={wish === undefined ? "Keep it in memory" : "Change"}
        onDo={() => change("PUT /keeps/{model}", { ...at, body })}
      >
        <div class="two">
          <TextField label="On so many machines" type="number" value={copies} onText={setCopies} required />
          <TextField
            label="Only on these"
            value={machines}
            onText={setMachines}
            placeholder="all that let models be placed"
          />
        </div>
        <p class="quiet">The owners of machines permit it with TRUNKLINE_MANAGE=place.</p>
      </ActionForm>
      {wish !== undefined && (
        <div class="actions">
          <Confirm
            action="Keep it no longer"
            danger={false}
            question="It stays in memory until another model needs the room."
            onDo={() => change("DELETE /keeps/{model}", at)}
          />
        </div>
      )}
    </>
  );
}
