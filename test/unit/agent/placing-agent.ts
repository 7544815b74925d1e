import { onTestFinished } from "vitest";
import type { ModelMemory } from "#shared/placing/make-room.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { LoadingRuntime } from "./loading-runtime.ts";

/** An agent that may load and unload the models of this size, in MB, within a memory of 24,000 MB. */
export async function placingAgent(
  sizes: Readonly<Record<string, number>>,
  { totalMb = 24_000, manage = [] }: { readonly totalMb?: number; readonly manage?: readonly ManageAction[] } = {},
) {
  const runtime = new LoadingRuntime({ sizes, totalMb });
  const memory = { read: async (): Promise<ModelMemory> => runtime.memory };
  const agent = await agentOnBroker({ runtime, memory, queueMax: 20, manage });
  onTestFinished(() => void agent.jobs.drain(AbortSignal.abort()));
  const load = async (model: string): Promise<void> => {
    runtime.finishLoad(model);
    await agent.settle();
    await agent.settle();
  };
  /** Answers the request that was begun in this place. */
  const answer = async (place: number): Promise<void> => {
    runtime.begun(place).text("Hi").finish();
    await agent.settle();
    await agent.settle();
  };
  return { ...agent, runtime, memory, load, answer };
}
