import { Operator } from "./operator.ts";
import { until } from "./until.ts";

const provedWithinMs = 20_000;

/** Resolves when every gateway knows of all these offers of models that their machines go on with a begun answer. */
export async function untilProved(site: {
  readonly redis: { readonly url: string };
  readonly gateways: readonly { readonly operationsUrl: string }[];
  readonly offers: number;
}): Promise<void> {
  await using operator = await Operator.on({ redisUrl: site.redis.url });
  const admin = (await operator.issue({ kind: "admin" })).token.reveal();
  for (const { operationsUrl } of site.gateways) {
    const proved = async (): Promise<boolean> => {
      const headers = { authorization: `Bearer ${admin}` };
      const answer = await fetch(`${operationsUrl}/admin/v1/models`, { headers });
      const { data } = (await answer.json()) as { data: { continues?: string[] }[] };
      return data.length === site.offers && data.every(({ continues }) => continues?.includes("plain"));
    };
    await until(proved, { what: "all machines to have proved that they go on", timeoutMs: provedWithinMs });
  }
}
