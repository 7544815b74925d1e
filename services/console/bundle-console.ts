import { type OutputChunk, rolldown } from "rolldown";

/** The browsers that run the console. */
const target = ["chrome120", "firefox121", "safari17"];

/**
 * Bundles the console into one script, with its licences at the end. The package has it ready. A gateway that runs from the
 * sources makes it in memory, at the first request for it.
 */
export async function bundleConsole(entry: string): Promise<OutputChunk> {
  const bundler = await rolldown({
    input: entry,
    platform: "browser",
    tsconfig: false,
    transform: { target, jsx: { runtime: "automatic", importSource: "preact" } },
    onLog: (_level, log) => {
      throw new Error(`${entry}: ${log.message}`);
    },
  });
  const { output } = await bundler.generate({ format: "esm", codeSplitting: false, minify: true });
  await bundler.close();
  return output[0];
}
