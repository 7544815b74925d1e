import { useEffect, useRef, useState } from "preact/hooks";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { roomiest } from "#shared/placing/roomiest.ts";
import type { ProgressLine } from "#shared/protocol/model.ts";
import { to } from "../address.ts";
import { type ApiFault, faultOf, work } from "../admin-api.ts";
import { fleet } from "../live.ts";
import { Dialog } from "../dialogs.tsx";
import { Button, Choice, TextField } from "../forms.tsx";
import { FaultNotice, Notice } from "../parts.tsx";
import { bytesText, sizeText } from "../quantity.ts";
import { Bar, Name } from "../values.tsx";

type State =
  | { readonly at: "form"; readonly fault?: ApiFault | undefined }
  | { readonly at: "pulling"; readonly line?: ProgressLine }
  | { readonly at: "done" };

/** Has a machine fetch a model, and shows how far it has come. The pull goes on when the window is closed. */
export function PullDialog({ onClose }: { readonly onClose: () => void }) {
  const present = fleet.value?.data.filter(({ status }) => status === "present") ?? [];
  const [chosen, setChosen] = useState<string>();
  // The fleet may be heard after the window was opened.
  const machine = chosen ?? roomiest(present) ?? present[0]?.machine ?? "";
  const [model, setModel] = useState("");
  const [state, setState] = useState<State>({ at: "form" });
  const pulling = useRef<AbortController>(undefined);
  useEffect(() => () => pulling.current?.abort(), []);
  const pull = async (event: Event): Promise<void> => {
    event.preventDefault();
    const stop = new AbortController();
    pulling.current = stop;
    setState({ at: "pulling" });
    try {
      const sent = { params: { machine, action: "pull" }, body: { model } } as const;
      await work(sent, { until: stop.signal, onLine: (line) => setState({ at: "pulling", line }) });
      setState({ at: "done" });
    } catch (error) {
      setState({ at: "form", ...(!stop.signal.aborted && { fault: faultOf(error) }) });
    }
  };
  const stopPull = (): Promise<void> => work({ params: { machine, action: "stop" }, body: { model } });
  return (
    <Dialog title="Pull a model" onClose={onClose}>
      {state.at === "form" && (
        <form onSubmit={(event) => void pull(event)}>
          <Choice
            label="Machine"
            value={machine}
            onChoose={setChosen}
            options={present.map((each) => [each.machine, labelOf(each)] as const)}
            hint="Pulls need TRUNKLINE_MANAGE=pull on the machine. Unless you choose one, the machine with the most room pulls it."
          />
          <TextField
            label="Model"
            value={model}
            onText={setModel}
            required
            hint="The name by which its model server knows it, such as qwen3:8b."
          />
          <FaultNotice fault={state.fault} />
          <button class="primary" disabled={machine === ""}>
            Pull
          </button>
        </form>
      )}
      {state.at === "pulling" && (
        <>
          <p>
            <Name>{machine}</Name> pulls <Name>{model}</Name>. The pull goes on when you close this window.
          </p>
          <Progress line={state.line} />
          <div class="actions">
            <Button text="Stop" onDo={() => stopPull().catch(() => undefined)} />
          </div>
        </>
      )}
      {state.at === "done" && (
        <Notice tone="good">
          <Name>{model}</Name> is on <Name>{machine}</Name>. <a href={to(["models", "of", model])}>Look at it</a>
        </Notice>
      )}
    </Dialog>
  );
}

function labelOf({ machine, memory }: ShownFleetMachine): string {
  if (!memory) return machine;
  const disk = memory.disk_free_mb === null ? "" : `, ${sizeText(memory.disk_free_mb)} of disk free`;
  return `${machine}: ${sizeText(memory.total_mb)} of memory${disk}${memory.can_pull ? "" : ", may not pull"}`;
}

function Progress({ line }: { readonly line: ProgressLine | undefined }) {
  const { completed_bytes: done = null, total_bytes: total = null } = line ?? {};
  const far = done !== null && total !== null ? `${bytesText(done)} of ${bytesText(total)}` : undefined;
  return (
    <>
      {far !== undefined && (
        <p>
          <Bar part={done ?? 0} whole={total ?? 0} label={far} /> {far}
        </p>
      )}
      <p class="quiet" role="status">
        <bdi>{line?.status ?? "Asking the machine…"}</bdi>
      </p>
    </>
  );
}
