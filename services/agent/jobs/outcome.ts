import type { FinishReason, Usage } from "#shared/answer/answer-event.ts";
import type { Fault } from "#shared/fault/fault.ts";

/** How a job ends, as its one terminal frame reports it. */
export type Outcome =
  | {
      readonly outcome: "end";
      readonly finishReason?: FinishReason | undefined;
      readonly usage?: Usage | undefined;
    }
  | { readonly outcome: "fault"; readonly fault: Fault; readonly usage?: Usage | undefined };
