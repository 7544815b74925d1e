import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished } from "vitest";

/** A folder for the tests that are declared where this is called, which is removed after the last of them. */
export function folderOfTests(): string {
  const { path, remove } = temporaryFolder();
  afterAll(remove);
  return path;
}

/** A folder for the test that runs, which is removed at its end. */
export function folderOfTest(): string {
  const { path, remove } = temporaryFolder();
  onTestFinished(remove);
  return path;
}

function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), "trunkline-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
