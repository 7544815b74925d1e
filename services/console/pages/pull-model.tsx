import { useEffect, useRef, useState } from "preact/hooks";
import { knownSize, pullFit } from "#shared/placing/pull-fit.ts";
import { roomiest } from "#shared/placing/roomiest.ts";
import { query, to } from "../address.ts";
import { type ApiFault, faultOf, useAnswer, work } from "../admin-api.ts";
import { fleet } from "../live.ts";
import { Dialog } from "../dialogs.tsx";
import { Button, Choice, TextField } from "../forms.tsx";
import { FaultNotice, Notice } from "../parts.tsx";
import { sizeText } from "../quantity.ts";
import { Name } from "../values.tsx";
import { Pulls } from "./pulls.tsx";

type State = { readonly at: "form"; readonly fault?: ApiFault | undefined } | { readonly at: "pulling" | "done" };

/** Has a machine fetch a model, and shows how far it has come. The pull goes on when the window is closed. */
export function PullDialog({ onClose }: { readonly onClose: () => void }) {
  const present = fleet.value?.data.filter(({ status }) => status === "present") ?? [];
  const { answer: models } = useAnswer("GET /models", {});
  const [model, setModel] = useState(query.value.get("model") ?? "");
  const size = knownSize(model, models?.data ?? []);
  const fits = new Map(present.map((each) => [each.machine, pullFit(each.memory, size)]));
  const fitting = present.filter(({ machine }) => size === undefined || fits.get(machine)?.[0] === "good");
  const [chosen, setChosen] = useState<string>();
  // The fleet may be heard after the window was opened.
  const machine = chosen ?? roomiest(fitting) ?? roomiest(present) ?? present[0]?.machine ?? "";
  const [state, setState] = useState<State>({ at: "form" });
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const pull = async (event: Event): Promise<void> => {
    event.preventDefault();
    setState({ at: "pulling" });
    try {
      await work({ params: { machine, action: "pull" }, body: { model } }, { until: leaving.current.signal });
      setState({ at: "done" });
    } catch (error) {
      setState({ at: "form", fault: faultOf(error) });
    }
  };
  const [tone, fit] = fits.get(machine) ?? ["plain", ""];
  return (
    <Dialog title="Pull a model" onClose={onClose}>
      {state.at === "form" && (
        <form onSubmit={(event) => void pull(event)}>
          <TextField
            label="Model"
            value={model}
            onText={setModel}
            required
            hint="The name by which its model server knows it, such as qwen3:8b."
          />
          <Choice
            label="Machine"
            value={machine}
            onChoose={setChosen}
            options={present.map(
              (each) => [each.machine, `${each.machine}: ${fits.get(each.machine)?.[1].split(" (")[0]}`] as const,
            )}
            hint="Unless you choose one, the machine with the most room pulls it."
          />
          {machine !== "" && (
            <Notice tone={tone}>
              <bdi>{machine}</bdi>: {fit}.{" "}
              {size === undefined ? (
                "Size unknown: no machine has this model, and its server tells the size only as it pulls."
              ) : (
                <>
                  The model has {sizeText(size.sizeMb)} on <bdi>{size.machine}</bdi>.
                </>
              )}
            </Notice>
          )}
          <FaultNotice fault={state.fault} />
          <div class="actions">
            <Button text="Cancel" onDo={onClose} />
            <button class="primary" disabled={machine === ""}>
              Pull
            </button>
          </div>
        </form>
      )}
      {state.at === "pulling" && (
        <>
          <p role="status">
            <Name>{machine}</Name> is asked for <Name>{model}</Name>. The pull goes on when you close this window.
          </p>
          <Pulls isShown={(each, at) => at === machine && each.model === model && each.state === "pulling"} />
        </>
      )}
      {state.at === "done" && (
        <Notice tone="good">
          <Name>{model}</Name> is on <Name>{machine}</Name>. <a href={to(["models", "of", model])}>Go to the model</a>
        </Notice>
      )}
    </Dialog>
  );
}
