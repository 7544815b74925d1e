import { JobTable } from "../../../../services/agent/jobs/job-table.ts";
import { FrameFollower } from "../../../../services/gateway/dispatch/follow-frames.ts";

// Machines send no beats, and gateways neither look at the jobs that are open nor judge their silence.
JobTable.prototype.rows = () => new Map();
FrameFollower.prototype.tick = () => undefined;
