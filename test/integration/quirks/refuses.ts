import { expect } from "vitest";
import type { Stage } from "./stage.ts";

/** The request is a 400 that names what cannot be honoured, and the runtime is not asked. */
export async function refuses(stage: Stage, request: object, param: string): Promise<void> {
  expect(await stage.refused(undefined, request)).toMatchObject({ status: 400, error: { param } });
}
