import { expect, onTestFinished, test } from "vitest";
import { FakeOllama, type FakeOllamaChat } from "../harness/fake-ollama.ts";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const mark = "X";
/** The same bytes, with one that is no UTF-8 in place of the mark. */
const withOddByte = (text: string): Buffer => {
  const bytes = Buffer.from(text);
  bytes[bytes.indexOf(mark)] = 0xff;
  return bytes;
};

test.skipIf(lentOnly("nats", "redis")).each(["vllm", "ollama"])(
  "an answer of %s with a byte that is no UTF-8 has one U+FFFD there, one warning and a count by machine",
  async (kind) => {
    const says = (chat: FakeOllamaChat | FakeOpenAiChat): void => {
      const raw = chat.raw.bind(chat);
      chat.raw = (bytes) => raw(String(bytes).includes(mark) ? withOddByte(String(bytes)) : bytes);
      chat.say(`ca${mark}fé`);
      chat.done();
    };
    const fake =
      kind === "vllm"
        ? await FakeVllm.start({ models: [{ id: "m" }] })
        : await FakeOllama.start({ models: [{ name: "m:latest", capabilities: ["completion"] }] });
    onTestFinished(() => fake.stop());
    fake.onChat = says;
    const env = { TRUNKLINE_RUNTIME: kind, TRUNKLINE_RUNTIME_URL: fake.url };
    await using fleet = await startFleet({ machines: { attic: { env } } });
    await fleet.endpoint.untilListed("m");
    expect(await fleet.endpoint.answer({ model: "m", says: "hi" })).toBe("ca\ufffdfé");
    expect(await fleet.endpoint.answer({ model: "m", says: "hi" })).toBe("ca\ufffdfé");
    const warned = (await fleet.agent("attic").logLines()).filter(({ msg }) => msg.includes("are no UTF-8"));
    expect(warned.map(({ level }) => level)).toEqual([40]);
    const counted = async (): Promise<boolean> => {
      const metrics = await MetricsText.scrape(fleet.gateway.operationsUrl);
      return metrics.value("trunkline_machine_answers_not_utf8", { machine: "attic" }) === 2;
    };
    await until(counted, { what: "both answers to be counted" });
  },
);
