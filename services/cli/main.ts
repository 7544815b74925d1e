#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// With what was compiled before, a command starts in little more than half the time; only what is imported after this
// line is kept.
enableCompileCache();
const { trunkline } = await import("./trunkline.ts");

const { argv, env: environment, stdout, stderr } = process;
process.exitCode = await trunkline({ arguments: argv.slice(2), environment, stdout, stderr });
