import { limits } from "#shared/protocol/limits.ts";
import { ReplayBuffer } from "../../../../services/agent/jobs/replay-buffer.ts";

const sizes: { -readonly [name in keyof typeof limits]: number } = limits;

// More than any answer has, so that none waits for credit and none is given; and nothing is kept to be sent again.
sizes.streamCreditBytes = sizes.wholeCreditBytes = 2 ** 49;
sizes.creditStepBytes = sizes.takenStepBytes = Infinity;
ReplayBuffer.prototype.keep = () => undefined;
