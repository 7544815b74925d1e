import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { BalancedFleet } from "../harness/load/balanced-fleet.ts";
import { until } from "../harness/until.ts";

const page = readFileSync(new URL("../../docs/answers-that-go-on.md", import.meta.url), "utf8");
const hasPython = spawnSync("python3", ["--version"]).status === 0;

const languages = [
  { fence: "js", command: process.execPath, options: ["--input-type=module", "--eval"], isHere: true },
  { fence: "python", command: "python3", options: ["-c"], isHere: hasPython },
];

function programIn(fence: string): string {
  const program = new RegExp(`^\`\`\`${fence}\n(.*?)^\`\`\``, "ms").exec(page)?.[1];
  if (program === undefined) throw new Error(`the page has no program in ${fence}`);
  return program;
}

describe.skipIf(lentOnly("nats", "redis"))("a client of docs/answers-that-go-on.md", () => {
  test.each(languages)(
    "a client of docs/answers-that-go-on.md in $fence prints the whole answer while gateways are killed",
    async (language) => {
      if (!language.isHere) {
        console.log(`skipped: there is no ${language.command} here`);
        return;
      }
      const { fence, command, options } = language;
      await using fleet = await BalancedFleet.start({ gateways: 2, machines: { attic: ["scripted"] } });
      const env = { ...process.env, BASE_URL: fleet.balancer.baseUrl, API_KEY: fleet.key, MODEL: "scripted" };
      const asked = "/script tokens=250 delay_ms=20 nonce=p";
      const client = spawn(command, [...options, programIn(fence), ...(fence === "js" ? ["--"] : []), asked], { env });
      let printed = "";
      let said = "";
      client.stdout.on("data", (piece) => (printed += piece));
      client.stderr.on("data", (piece) => (said += piece));
      const ended = new Promise<number | null>((resolve) => client.once("close", resolve));
      for (const index of [0, 1]) {
        const before = printed.length;
        await until(() => printed.length > before + 100, { what: `more of the answer ${said}` });
        await fleet.gateways[index]?.kill();
        await fleet.startGateway(index);
      }
      expect([await ended, said]).toEqual([0, ""]);
      expect(printed).toBe(Array.from({ length: 250 }, (_, token) => `p-${token} `).join(""));
    },
  );
});
