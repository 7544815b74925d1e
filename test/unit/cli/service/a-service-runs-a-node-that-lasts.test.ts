import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { findProgram, placeProgram } from "../../../../services/cli/service/copy-program.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

/** A folder with a Node of one version, links to it, and a package. */
function host() {
  const root = realpathSync(folderOfTest());
  const file = (path: string, text: string): string => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
    return join(root, path);
  };
  const link = (path: string, target: string): string => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    symlinkSync(target, join(root, path));
    return join(root, path);
  };
  const node = file("Cellar/node/26.1.0/bin/node", "");
  file("pkg/package.json", "{}");
  const main = file("pkg/trunkline.js", "");
  return { root, node, main, file, link };
}

test("Homebrew's link is preferred to the folder of one version", () => {
  const { node, main, link, root } = host();
  const stable = link("bin/node", node);
  const path = [join(root, "empty"), join(root, "bin")].join(delimiter);
  expect(findProgram({ execPath: node, script: main, isExecutable: false, path })).toMatchObject({ node: stable });
});

test.each(["_npx/1/node_modules/.bin", "fnm_multishells/123/bin"])(
  "a link in %s does not last, so it is not used",
  (folder) => {
    const { node, main, link, root } = host();
    link(`${folder}/node`, node);
    const path = join(root, folder);
    expect(findProgram({ execPath: node, script: main, isExecutable: false, path })).toMatchObject({ node });
  },
);

test("a package is found behind the link that npm makes", () => {
  const { node, main, link, root } = host();
  const script = link("bin/trunkline", main);
  expect(findProgram({ execPath: node, script, isExecutable: false, path: "" })).toEqual({
    kind: "package",
    node,
    main,
    folder: join(root, "pkg"),
  });
});

test("a single-file executable is copied itself", () => {
  const { root, file } = host();
  const execPath = file("Downloads/trunkline", "#!");
  const program = findProgram({ execPath, script: execPath, isExecutable: true, path: "" });
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: true });
  expect(placed).toEqual({ argv: [join(root, "programs/1/trunkline")], folder: join(root, "programs/1") });
});

test("a system service gets a copy of a Node that is hidden from it", () => {
  const { root, node, main } = host();
  const program = { kind: "package", node, main, folder: join(root, "pkg") } as const;
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: true });
  expect(placed.argv).toEqual([join(root, "programs/1/node"), join(root, "programs/1/trunkline.js")]);
  const own = placeProgram(program, { programs: join(root, "programs"), name: "2", isSealed: false });
  expect(own.argv[0]).toBe(node);
});

test("a service gets a copy of a Node that npx fetched", () => {
  const { root, main, file } = host();
  const node = file("_npx/1/node_modules/node/bin/node", "");
  const program = { kind: "package", node, main, folder: join(root, "pkg") } as const;
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: false });
  expect(placed.argv).toEqual([join(root, "programs/1/node"), join(root, "programs/1/trunkline.js")]);
});

test("sources that are hidden from a system service are refused", () => {
  const program = { kind: "source", node: "/usr/bin/node", main: "/home/ann/trunkline/services/cli/main.ts" } as const;
  const place = () => placeProgram(program, { programs: "/nowhere", name: "1", isSealed: true });
  expect(place).toThrow("move the checkout to /opt/trunkline");
});
