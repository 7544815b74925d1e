import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { assertOwnFolder } from "#shared/process/state-folder.ts";

const [root, person, stranger] = [0, 4_321, 4_322];

/** A folder of a person who is not root, as far as this user can make one. */
function folderOfPerson(): { readonly folder: string; readonly owner: number } {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-owner-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const user = process.getuid?.() ?? root;
  if (user === root) chownSync(folder, person, person);
  return { folder, owner: user === root ? person : user };
}

test.skipIf(process.getuid === undefined)(
  "a state folder of another user is refused, with both users and the remedy",
  () => {
    const { folder, owner } = folderOfPerson();
    expect(() => assertOwnFolder(folder, stranger)).toThrow(
      expect.objectContaining({
        exitCode: exitCodes.config,
        message: expect.stringMatching(
          `${folder} belongs.*uid ${owner}.*uid ${stranger}.*run this as that user.*TRUNKLINE_STATE_DIR`,
        ),
      }),
    );
  },
);

test.skipIf(process.getuid === undefined)(
  "a state folder is accepted by its owner and by root, and one of root by all",
  () => {
    const { folder, owner } = folderOfPerson();
    assertOwnFolder(folder, owner);
    assertOwnFolder(folder, root);
    assertOwnFolder("/", stranger);
    assertOwnFolder(join(folder, "not there"), stranger);
  },
);
