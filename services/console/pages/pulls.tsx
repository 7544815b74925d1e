import { useState } from "preact/hooks";
import type { ShownPull } from "#shared/fleet/shown-fleet.ts";
import { type ApiFault, faultOf, work } from "../admin-api.ts";
import { Button } from "../forms.tsx";
import { fleet } from "../live.ts";
import { FaultNotice, Notice } from "../parts.tsx";
import { sizeText, spanText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { Bar, MachineLink, ModelLink } from "../values.tsx";

interface PullProps {
  readonly machine: string;
  readonly pull: ShownPull;
}

/** The pulls that `isShown`, whoever began them: those under way, and those that failed within the last 10 minutes. */
export function Pulls({ isShown = () => true }: { readonly isShown?: (pull: ShownPull, machine: string) => boolean }) {
  const lines = fleet.value?.data.flatMap(({ machine, memory }) =>
    (memory?.pulls ?? [])
      .filter((pull) => pull.state !== "done" && isShown(pull, machine))
      .map((pull) => <PullLine key={`${machine} ${pull.model}`} machine={machine} pull={pull} />),
  );
  return lines && lines.length > 0 ? <div class="stack">{lines}</div> : null;
}

function PullLine({ machine, pull: { model, state, status, percent, totalMb, leftMs } }: PullProps) {
  const [fault, setFault] = useState<ApiFault>();
  const stop = (): Promise<void> =>
    work({ params: { machine, action: "stop" }, body: { model } }).catch((error: unknown) => setFault(faultOf(error)));
  const names = [
    <MachineLink name={machine} />,
    state === "failed" ? " has not pulled " : " pulls ",
    <ModelLink id={model} />,
  ];
  if (state === "failed") return <Notice tone="warn">{[...names, ": ", <bdi>{status}</bdi>]}</Notice>;
  const left = leftMs === undefined ? "" : `, about ${spanText(leftMs)} left`;
  const far = percent !== undefined && totalMb !== undefined && `${percent} % of ${sizeText(totalMb)}${left}`;
  return (
    <Notice>
      <div class="actions">
        <span>{names}</span>
        {far && <Bar part={percent ?? 0} whole={100} label={far} />}
        <small>
          {far && `${far}: `}
          <bdi>{status}</bdi>
        </small>
        {mayChange() && <Button text="Stop" label={`Stop the pull of ${model} on ${machine}`} onDo={stop} />}
      </div>
      <FaultNotice fault={fault} />
    </Notice>
  );
}
