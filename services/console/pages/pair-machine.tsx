import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { onOlderNode } from "#shared/protocol/older-node.ts";
import { go, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { clock, fleet } from "../live.ts";
import { Dialog } from "../dialogs.tsx";
import { listIn, ActionForm, Button, TextField } from "../forms.tsx";
import { CopyText, Notice } from "../parts.tsx";
import { spanText } from "../quantity.ts";

export const patternsHint = "Names or patterns with *, such as llama* qwen*. Empty for all.";

type Join = AnswerTo<"POST /machines/{machine}/pair">;

/** Pairs a machine: its name, then the line to paste there, then its first sign of life. */
export function PairDialog({ onClose, name: given = "" }: { readonly onClose: () => void; readonly name?: string }) {
  const [name, setName] = useState(given);
  const [models, setModels] = useState("");
  const [join, setJoin] = useState<Join>();
  const patterns = listIn(models);
  const pair = async (): Promise<void> => {
    const body = patterns.length === 0 ? {} : { models: patterns };
    setJoin(await change("POST /machines/{machine}/pair", { params: { machine: name }, body }));
  };
  return (
    <Dialog title={join === undefined ? "Pair a machine" : `Pair ${join.name}`} onClose={onClose}>
      {join === undefined ? (
        <ActionForm action="Make the line" onDo={pair} onCancel={onClose}>
          <TextField
            label="Name"
            param="machine"
            hint="Letters, digits and hyphens, such as home-4090."
            value={name}
            onText={setName}
            required
          />
          <TextField
            label="Models it may offer"
            param="models"
            hint={patternsHint}
            suggest={{ of: "models", isList: true }}
            value={models}
            onText={setModels}
          />
        </ActionForm>
      ) : (
        <Waiting join={join} onAgain={() => setJoin(undefined)} />
      )}
    </Dialog>
  );
}

function Waiting({ join, onAgain }: { readonly join: Join; readonly onAgain: () => void }) {
  const machine = fleet.value?.data.find((each) => each.machine === join.name);
  const isHere = machine !== undefined && (machine.pairing === "paired" || machine.pairing === "cordoned");
  const leftMs = Date.parse(join.expires_at) - clock.value;
  if (isHere && machine.takes_work) {
    const { models } = machine;
    return (
      <>
        <Notice tone="good">
          <strong>
            <bdi>{join.name}</bdi> is here{models > 0 && `, and offers ${models} ${models === 1 ? "model" : "models"}`}.
          </strong>
        </Notice>
        <div class="actions">
          <Button text="Try the playground" look="primary" onDo={() => go(to(["playground"]))} />
          <Button text="Go to the machine" onDo={() => go(to(["machines", join.name]))} />
        </div>
      </>
    );
  }
  if (isHere) {
    return (
      <Notice tone="warn">
        <bdi>{join.name}</bdi> is paired, and gets no work yet: {machine.why ?? "the agent looks for a model server"}.
      </Notice>
    );
  }
  if (leftMs <= 0) {
    return (
      <>
        <Notice tone="warn">The line has expired unused.</Notice>
        <div class="actions">
          <Button text="Make another one" look="primary" onDo={onAgain} />
        </div>
      </>
    );
  }
  return (
    <>
      <CopyText
        label="Paste this on the machine. The machine needs Node 22.19 or newer, and nothing else."
        text={join.command}
      />
      <CopyText label="If its Node is older, this line fetches Node 24 too." text={onOlderNode(join.command)} />
      <p class="quiet" role="status">
        Waiting for it. The line is good once, for another {spanText(leftMs)}.
      </p>
    </>
  );
}
