import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { asksForLiveMemory, liveMemoryFile, liveMemoryFolder } from "../live-memory.ts";

/** Node loads this before the process whose memory is to be looked at. */
const folder = process.env[liveMemoryFolder];
if (folder === undefined) throw new Error(`${liveMemoryFolder} has to name a folder`);
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

process.on(asksForLiveMemory, () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  const file = join(folder, liveMemoryFile(process.pid));
  writeFileSync(`${file}.new`, String((heapUsed + external) / 1_024));
  renameSync(`${file}.new`, file);
});
