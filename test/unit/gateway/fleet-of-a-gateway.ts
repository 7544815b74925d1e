import type { Presence } from "#shared/protocol/presence.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { createLog } from "#shared/process/log.ts";
import type { KnownModels } from "#shared/store/known-models.ts";
import { Catalogues } from "../../../services/gateway/fleet/catalogues.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { Breakers } from "../../../services/gateway/routing/breakers.ts";
import { JobPlacements } from "../../../services/gateway/routing/job-placements.ts";
import { MachineRanking } from "../../../services/gateway/routing/rank-machines.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { modelOf } from "./machines-of-a-fleet.ts";

interface Fleet {
  /** What a machine answers that is asked for its models: `llama3`, unless the test says otherwise. */
  readonly ask?: ConstructorParameters<typeof Catalogues>[0]["ask"];
  readonly knows?: KnownModels["knows"];
  readonly random?: () => number;
  readonly external?: ReadonlySet<string>;
  /** How long a request waits for a machine that is away. */
  readonly waitMs?: number;
  readonly clock?: TurnableClock;
  readonly roster?: Roster;
}

/** What a gateway knows of its machines and their models, and how it ranks them. */
export function fleetOfAGateway(fleet: Fleet = {}) {
  const timing = timingAt(1);
  const { clock = new TurnableClock(), roster = new Roster(timing), waitMs = 0, random = () => 0, external } = fleet;
  const { ask = async () => [modelOf("llama3")], knows = async () => "known" } = fleet;
  const knownModels: KnownModels = { remember: async () => undefined, knows };
  const log = createLog({ level: "silent", name: "test" });
  const catalogues = new Catalogues({ ask, knownModels, clock, log });
  const breakers = new Breakers(timing);
  const placements = new JobPlacements({ roster, catalogues, breakers, clock, random, ...(external && { external }) });
  const ranking = new MachineRanking({ roster, catalogues, knownModels, placements, waitMs, timing, clock });
  const hear = (presence: Presence): void => {
    roster.announced(presence, clock.now());
    catalogues.follow(presence);
  };
  return { clock, timing, log, roster, catalogues, breakers, placements, ranking, hear };
}
