import { useState } from "preact/hooks";
import type { RouteTarget, ShownModelRoute } from "#shared/records/route-record.ts";
import { allows } from "#shared/records/match-scope.ts";
import { query, setQuery, to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Check, Confirm, FormDialog, listIn, QueryButton, TextField } from "../forms.tsx";
import { Badge, FaultNotice, ModelLink, Name, Page, Table, Time, UnreadNotice } from "../parts.tsx";
import { mayChange } from "../session.ts";
import { MatchingModels } from "./matching-models.tsx";
import { ModelTabs } from "./model-tabs.tsx";

export function Routes() {
  const { answer, fault } = useAnswer("GET /routes", {});
  const open = query.value.get("edit");
  const edited = answer?.data.find(({ route }) => route === open);
  const words = query.value.get("find") ?? "";
  const rows = answer?.data.filter(({ route }) => route.includes(words)) ?? [];
  return (
    <Page
      title="Routes"
      about="Names that stand for models: clients ask for the name, and the first target that is there answers."
      actions={
        mayChange() && (
          <QueryButton name="edit" value="*new" isPrimary>
            Make a route
          </QueryButton>
        )
      }
    >
      <ModelTabs at="routes" />
      <FaultNotice fault={fault} />
      <UnreadNotice unread={answer?.unread} />
      {answer !== undefined && (
        <Table
          caption="Routes"
          rows={rows}
          keyOf={({ route }) => route}
          empty="There is no route. One lets gpt-4o, for instance, mean a model of yours."
          columns={[
            { name: "name", cell: ({ route }) => <Name>{route}</Name> },
            {
              name: "targets, in order",
              cell: ({ targets }) => (
                <ol class="targets">
                  {targets.map((target) => (
                    <li key={targetText(target)}>
                      <Target target={target} />
                    </li>
                  ))}
                </ol>
              ),
            },
            { name: "changed", wide: true, cell: ({ changed_at: at }) => <Time at={at} /> },
            {
              name: "",
              cell: ({ route }) => (
                <div class="actions">
                  {!route.includes("*") && <a href={to(["models", "of", route])}>Who would be asked</a>}
                  {mayChange() && <RouteActions route={route} />}
                </div>
              ),
            },
          ]}
        />
      )}
      {mayChange() && (edited !== undefined || open === "*new") && (
        <RouteDialog key={open} route={edited} onClose={() => setQuery("edit", undefined)} />
      )}
    </Page>
  );
}

function RouteActions({ route }: { readonly route: string }) {
  return (
    <>
      <button type="button" onClick={() => setQuery("edit", route)} aria-label={`Edit ${route}`}>
        Edit
      </button>
      <Confirm
        action="Remove"
        question={
          <>
            The name <Name>{route}</Name> then means the model of that name again, if there is one.
          </>
        }
        onDo={() => change("DELETE /routes/{route}", { params: { route } })}
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
      {external && (
        <>
          {" "}
          <Badge tone="warn">external</Badge>
        </>
      )}
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

function RouteDialog({
  route,
  onClose,
}: {
  readonly route: ShownModelRoute | undefined;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState(route?.route ?? "");
  const [drafts, setDrafts] = useState<readonly Draft[]>(
    route?.targets.map(({ model, machines, label, external }) => ({
      model,
      machines: machines?.join(" ") ?? "",
      label: label ?? "",
      external: external === true,
    })) ?? [emptyDraft],
  );
  const put = (place: number, draft: Draft): void => setDrafts(drafts.with(place, draft));
  return (
    <FormDialog
      title={route === undefined ? "Make a route" : `Route ${route.route}`}
      action="Save"
      onDo={() => change("PUT /routes/{route}", { params: { route: name }, body: { targets: drafts.map(targetOf) } })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        onText={setName}
        required
        hint="The name that clients ask for, or a pattern with *, such as claude-*."
      />
      {name !== "" && (
        <MatchingModels
          matches={(id) => (name.includes("*") ? allows([name], id) : id === name)}
          before="It stands before"
          shownMax={8}
          none="No model has this name."
        />
      )}
      {drafts.map((draft, place) => (
        <fieldset key={place}>
          <legend>{place === 0 ? "First" : `Then, ${place + 1}.`}</legend>
          <div class="two">
            <TextField label="Model" value={draft.model} onText={(model) => put(place, { ...draft, model })} required />
            <TextField
              label="Only on machines"
              value={draft.machines}
              onText={(machines) => put(place, { ...draft, machines })}
              placeholder="all"
            />
            <TextField
              label="Only with the label"
              value={draft.label}
              onText={(label) => put(place, { ...draft, label })}
              placeholder="none"
            />
          </div>
          <div class="actions">
            <Check
              label="external machines"
              checked={draft.external}
              onCheck={(external) => put(place, { ...draft, external })}
            />
            <button
              type="button"
              disabled={place === 0}
              aria-label={`Move target ${place + 1} up`}
              onClick={() => setDrafts(moved(drafts, place))}
            >
              Up
            </button>
            <button
              type="button"
              disabled={place === drafts.length - 1}
              aria-label={`Move target ${place + 1} down`}
              onClick={() => setDrafts(moved(drafts, place + 1))}
            >
              Down
            </button>
            <button
              type="button"
              disabled={drafts.length === 1}
              aria-label={`Leave out target ${place + 1}`}
              onClick={() => setDrafts(drafts.toSpliced(place, 1))}
            >
              Leave out
            </button>
          </div>
        </fieldset>
      ))}
      <button type="button" onClick={() => setDrafts([...drafts, emptyDraft])}>
        Add a target
      </button>
    </FormDialog>
  );
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
