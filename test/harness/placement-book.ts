import { pepperText, Peppers } from "#shared/keys/pepper.ts";
import type { PlacedLoad } from "../../services/gateway/routing/placed-loads.ts";
import type { PlacedPrompt, Placements } from "../../services/gateway/routing/placement-memory.ts";
import type { PlacementBook } from "../../services/gateway/routing/share-placements.ts";

/** The placements of a gateway without machines: the own ones as a test sets them, and all that other gateways told. */
export class TestBook implements PlacementBook {
  readonly ofOthers = new Map<string, readonly PlacedLoad[]>();
  /** All news, in their order; `gone` for a gateway that was forgotten. */
  readonly news: (Placements | "gone")[] = [];
  own: PlacedLoad[] = [];
  placed: PlacedPrompt[] = [];

  loads(): readonly PlacedLoad[] {
    return this.own;
  }

  takePrompts(): readonly PlacedPrompt[] {
    return this.placed.splice(0);
  }

  told(gateway: string, news: Placements): void {
    this.ofOthers.set(gateway, news.loads);
    this.news.push(news);
  }

  gone(gateway: string): void {
    this.ofOthers.delete(gateway);
    this.news.push("gone");
  }
}

const epoch = "1760000000000-0123abcd";

export function loadOn(machine: string, jobs = 1, backlogTokens = 0): PlacedLoad {
  return { machine, epoch, jobs, backlogTokens };
}

export function promptOn(machine: string, blocks: readonly number[], salt = 7): PlacedPrompt {
  return { machine, epoch, salt, blocks: Int32Array.from(blocks) };
}

/** Peppers of these letters; the first one is the current one. */
export function peppersOf(current: string, also?: string): Peppers {
  const pepper = (letter: string) => pepperText.parse(letter.repeat(32));
  return new Peppers(pepper(current), also === undefined ? undefined : pepper(also));
}
