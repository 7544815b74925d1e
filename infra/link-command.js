// Runs at the end of `npm ci`, because npm links no command of the project itself. Puts `trunkline` into `node_modules/.bin`.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// `NODE_COMPILE_CACHE` keeps `main.ts` compiled too. Without it each start waits for the compiler of TypeScript.
const script = `#!/bin/sh
file=$(readlink -f "$0")
NODE_COMPILE_CACHE=\${NODE_COMPILE_CACHE:-\${TMPDIR:-/tmp}/node-compile-cache}
export NODE_COMPILE_CACHE
exec "\${file%/*}/node" "\${file%/*}/../../services/cli/main.ts" "$@"
`;
// On Windows `npm run -s trunkline --` does the same.
if (process.platform !== "win32") {
  writeFileSync(fileURLToPath(new URL("../node_modules/.bin/trunkline", import.meta.url)), script, { mode: 0o755 });
}
