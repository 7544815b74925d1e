import { HandMadeAgent, handMadeEnd, handMadeModel } from "../../harness/hand-made-agent.ts";

/**
 * So many machines in one process, for what a gateway has to bear of them: each has a connection of its own, announces itself
 * and answers every job at once, without a runtime. They all offer the one model `m-0-0`.
 *
 *   simulated-machines.ts NATS_URL COUNT
 */
const [, , natsUrl = "", count = "1"] = process.argv;

const answer = Buffer.from(
  JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1_760_000_000,
    model: "m-0-0",
    choices: [{ index: 0, message: { role: "assistant", content: "Paris." }, logprobs: null, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  }),
);
const end = { ...handMadeEnd, usage: { promptTokens: 9, completionTokens: 3 } };

for (let place = 1; place <= Number(count); place += 1) {
  await HandMadeAgent.start({
    natsUrl,
    machine: `machine-${place}`,
    model: { ...handMadeModel, id: "m-0-0", context_window: 131_072 },
    slots: 64,
    onJob: ({ say }) => {
      say("data", answer, 1);
      say("end", end, 2);
    },
  });
}
console.log("ready");
