import { without } from "./report/own-variant.ts";
import { barePipeline } from "./variants/bare-pipeline.ts";
import { crowd } from "./variants/crowd.ts";
import { direct } from "./variants/direct.ts";
import { musistudio } from "./variants/musistudio.ts";
import { nginx } from "./variants/nginx.ts";
import { plainProxy } from "./variants/plain-proxy.ts";
import { portkey } from "./variants/portkey.ts";
import { switchable, type Switchable } from "./variants/switched-off/features.ts";
import { trunkline } from "./variants/trunkline.ts";
import type { Variant } from "./variants/variant.ts";

const forPlots = (variant: Variant): Variant => ({ ...variant, rounds: 2 });

const lackingTitles: Readonly<Record<Switchable, string>> = {
  credit: "credit, and without keeping what may have to be sent again",
  liveness: "beats, and without anybody who looks at jobs under way",
  log: "a line for each request and its usage",
  meters: "metrics of requests",
  usage: "usage records and limits",
};

/** All that can be measured. */
export const allVariants: readonly Variant[] = [
  direct,
  nginx,
  plainProxy,
  barePipeline(),
  barePipeline({ gateways: 2 }),
  musistudio,
  portkey,
  trunkline(),
  gateways(2),
  forPlots(gateways(3)),
  forPlots(gateways(4)),
  trunkline({
    name: `${without}limits`,
    title: "Trunkline with a key without limits, for what limits cost",
    limits: "off",
  }),
  ...switchable.map(lacking),
  trunkline({
    name: "trunkline-small",
    title: "Trunkline with a machine that runs 8 jobs at once and lets 8 wait",
    slots: 8,
    queueMax: 8,
  }),
  forPlots(
    trunkline({
      name: "trunkline-keys",
      title: "Trunkline with 20,000 keys, each asked with for the first time",
      freshKeys: 20_000,
    }),
  ),
  ...[1, 10, 50, 100, 300, 1_000].map((machines) => forPlots(crowd(machines))),
];

/** What its part of the code costs; limits are kept in the same books as usage, so that both are off together. */
function lacking(feature: Switchable): Variant {
  return trunkline({
    name: `${without}${feature}`,
    title: `Trunkline without ${lackingTitles[feature]}`,
    switchedOff: feature,
    ...(feature === "usage" && { limits: "off" }),
  });
}

function gateways(count: number): Variant {
  return trunkline({ name: `trunkline-${count}`, title: `Trunkline with ${count} gateways`, gateways: count });
}
