import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findBinary } from "../harness/find-binary.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";

const [bash, curl] = [await findBinary("bash"), await findBinary("curl")];
if (bash === undefined || curl === undefined) {
  console.log("Skipping the pasted curl line: there is no bash or no curl on the PATH.");
}

test.skipIf(bash === undefined || curl === undefined)(
  "the pasted lines print an answer as text, and stream a first chat",
  async () => {
    const settings = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", TRUNKLINE_RUNTIME: "scripted" };
    await using up = await TrunklineProcess.start({ args: ["up"], settings });
    const [welcome, baseUrl, key, line = ""] = await up.printed(
      /Base URL +(\S+)\n +API key +(\S+)\n[^]*?(curl [^]*?)\n\nCtrl-C stops it\./,
    );
    expect(welcome).toContain("scripted: a demonstration");
    expect(line).toContain(baseUrl);
    expect(line).toContain(key);

    const [page] = /http\S+\/docs/.exec(welcome) ?? [];
    expect(await (await fetch(String(page))).text()).toContain("docs/swagger-ui-bundle.js");

    const [, chat = ""] = /\n +(\S+ chat scripted 'Hello!')\n/.exec(welcome) ?? [];
    const answer = await promisify(execFile)(bash ?? "bash", ["-c", chat], { cwd: dirname(up.stateDir) });
    expect(answer.stdout).toMatch(/^Hello! You have reached Trunkline's demonstration\. [^{]*\n$/);

    const { stdout } = await promisify(execFile)(bash ?? "bash", ["-c", line]);
    const events = stdout.trimEnd().split("\n\n");
    expect(events.length).toBeGreaterThan(3);
    expect(events.every((event) => event.startsWith("data: "))).toBe(true);
    expect(events.at(-1)).toBe("data: [DONE]");
    expect(await up.terminate("SIGINT")).toBe(0);
    // Without settings the log has requests, and no other line while all is well.
    expect(new Set((await up.logLines()).map(({ msg }) => msg))).toEqual(new Set(["request"]));
  },
);
