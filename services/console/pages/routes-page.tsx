import { useState } from "preact/hooks";
import type { RouteTarget, ShownModelRoute } from "#shared/records/route-record.ts";
import { allows } from "#shared/records/match-scope.ts";
import { query, setQuery, to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Confirm, type DialogProps, FormDialog } from "../dialogs.tsx";
import { Button, Check, listIn, TextField } from "../forms.tsx";
import { Remedy } from "../remedies.tsx";
import { mayChange } from "../session.ts";
import type { Column } from "../table.tsx";
import { Badge, ModelLink, Name, Time } from "../values.tsx";
import { MatchingModels } from "./matching-models.tsx";
import { ModelTabs } from "./model-tabs.tsx";
import { RecordList } from "./record-page.tsx";

const columns: readonly Column<ShownModelRoute>[] = [
  ["name", ({ route }) => <Name>{route}</Name>, "", ({ route }) => route],
  [
    "targets, in order",
    ({ targets }) => (
      <ol class="targets">
        {targets.map((target) => (
          <li key={targetText(target)}>
            <Target target={target} />
          </li>
        ))}
      </ol>
    ),
    "",
    ({ targets }) => targets.map(targetText).join(" "),
  ],
  ["changed", ({ changed_at: at }) => <Time at={at} />, "wide", ({ changed_at: at }) => Date.parse(at)],
  [
    "",
    ({ route }) => (
      <div class="actions">
        {!route.includes("*") && <a href={to(["models", "of", route])}>Which machine answers</a>}
        {mayChange() && <RouteActions route={route} />}
      </div>
    ),
  ],
];

export function Routes() {
  const routes = useAnswer("GET /routes", {});
  const open = query.value.get("edit");
  const edited = routes.answer?.data.find(({ route }) => route === open);
  return (
    <RecordList
      title="Routes"
      about="A route is a name that clients may ask for. The first target that is available answers."
      actions={mayChange() && <Button text="Make a route" look="primary" onDo={() => setQuery("edit", "*new")} opens />}
      head={<ModelTabs at="routes" />}
      of={routes}
      keyOf={({ route }) => route}
      empty={["No route yet. A route lets a name such as gpt-4o stand for a model of yours. ", <Remedy by="route" />]}
      columns={columns}
    >
      {mayChange() && (edited !== undefined || open === "*new") && (
        <RouteDialog key={open} route={edited} onClose={() => setQuery("edit", undefined)} />
      )}
    </RecordList>
  );
}

function RouteActions({ route }: { readonly route: string }) {
  const remove = () => change("DELETE /routes/{route}", { params: { route } });
  return (
    <>
      <Button text="Edit" label={`Edit ${route}`} onDo={() => setQuery("edit", route)} opens />
      <Confirm
        action="Remove"
        object={route}
        effect="Requests for the name then go to the model of that name, if a machine offers it."
        onDo={remove}
      />
    </>
  );
}

function Target({ target: { model, machines, label, external } }: { readonly target: RouteTarget }) {
  return (
    <>
      <ModelLink id={model} />
      {machines && <small> on {machines.join(", ")}</small>}
      {label && <small> on machines with the label {label}</small>}
      {external && [" ", <Badge tone="warn">external</Badge>]}
    </>
  );
}

function targetText({ model, machines, label }: RouteTarget): string {
  return `${model} ${machines?.join() ?? ""} ${label ?? ""}`;
}

/** A target as a form has it. */
interface Draft {
  readonly model: string;
  readonly machines: string;
  readonly label: string;
  readonly external: boolean;
}
const emptyDraft: Draft = { model: "", machines: "", label: "", external: false };

type RouteProps = Pick<DialogProps, "onClose"> & { readonly route: ShownModelRoute | undefined };

function RouteDialog({ route, onClose }: RouteProps) {
  const [name, setName] = useState(route?.route ?? query.value.get("name") ?? "");
  const [drafts, setDrafts] = useState<readonly Draft[]>(route?.targets.map(draftOf) ?? [emptyDraft]);
  return (
    <FormDialog
      title={route === undefined ? "Make a route" : `Route ${route.route}`}
      action="Save"
      onDo={() => change("PUT /routes/{route}", { params: { route: name }, body: { targets: drafts.map(targetOf) } })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        param="route"
        value={name}
        onText={setName}
        required
        hint="The name that clients ask for, or a pattern with *, such as claude-*."
      />
      {name !== "" && (
        <MatchingModels
          matches={(id) => (name.includes("*") ? allows([name], id) : id === name)}
          before="The route replaces"
          shownMax={8}
          none="No model has this name."
        />
      )}
      {drafts.map((_, place) => (
        <TargetFields key={place} drafts={drafts} place={place} onDrafts={setDrafts} />
      ))}
      <Button text="Add a target" onDo={() => setDrafts([...drafts, emptyDraft])} />
    </FormDialog>
  );
}

interface TargetProps {
  readonly drafts: readonly Draft[];
  readonly place: number;
  readonly onDrafts: (drafts: readonly Draft[]) => void;
}

/** The fields of the target at `place`, and the buttons that move it. */
function TargetFields({ drafts, place, onDrafts }: TargetProps) {
  const draft = drafts[place] ?? emptyDraft;
  const put = (part: Partial<Draft>): void => onDrafts(drafts.with(place, { ...draft, ...part }));
  const field = (name: "model" | "machines" | "label") => ({
    param: `targets[${place}].${name}`,
    value: draft[name],
    onText: (text: string) => put({ [name]: text }),
  });
  const [isFirst, isLast] = [place === 0, place === drafts.length - 1];
  const at = `target ${place + 1}`;
  return (
    <fieldset>
      <legend>{isFirst ? "First" : `Then, ${place + 1}.`}</legend>
      <div class="two">
        <TextField label="Model" {...field("model")} suggest={{ of: "models" }} required />
        <TextField
          label="Only on machines"
          {...field("machines")}
          suggest={{ of: "machines", isList: true }}
          placeholder="all"
        />
        <TextField label="Only with the label" {...field("label")} suggest={{ of: "labels" }} placeholder="none" />
      </div>
      <div class="actions">
        <Check label="external machines" checked={draft.external} onCheck={(external) => put({ external })} />
        <Button text="Up" disabled={isFirst} label={`Move ${at} up`} onDo={() => onDrafts(moved(drafts, place))} />
        <Button
          text="Down"
          disabled={isLast}
          label={`Move ${at} down`}
          onDo={() => onDrafts(moved(drafts, place + 1))}
        />
        <Button
          text="Remove"
          disabled={drafts.length === 1}
          label={`Remove ${at}`}
          onDo={() => onDrafts(drafts.toSpliced(place, 1))}
        />
      </div>
    </fieldset>
  );
}

function draftOf({ model, machines, label = "", external }: RouteTarget): Draft {
  return { model, machines: machines?.join(" ") ?? "", label, external: external === true };
}

function targetOf({ model, machines, label, external }: Draft) {
  const names = listIn(machines);
  return {
    model,
    ...(names.length > 0 && { machines: names }),
    ...(label !== "" && { label }),
    ...(external && { external: true as const }),
  };
}

/** Returns the drafts with the one at `place` before its predecessor. */
function moved(drafts: readonly Draft[], place: number): readonly Draft[] {
  const [one, other] = [drafts[place - 1], drafts[place]];
  return one === undefined || other === undefined ? drafts : drafts.with(place - 1, other).with(place, one);
}
